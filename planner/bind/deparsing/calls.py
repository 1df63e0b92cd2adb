"""Analysis of calls (parse_func.c, parse_agg.c): functions, aggregates and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pglast.enums import CoercionForm

from catalog.postgres import PgProc, functions
from catalog.system.own_objects import prefix
from catalog.values.identifiers import quote_name
from catalog.values.types import by_oid
from planner.bind.conversion.resolution import (
    ANY,
    UNKNOWN,
    Candidate,
    TypeCall,
    function_call,
    polymorphic_types,
    result_type,
)
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Place
from planner.bind.deparsing.coercion import ANYTHING, as_text, as_variadic, coerce
from planner.bind.deparsing.expressions import analyse, condition, sorted_by
from planner.bind.deparsing.trees import Aggregate, Call, Const, Frame, Node, SortItem
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.search_path import find_functions

_INT8: Final = 20
_NONDEFAULT, _RANGE, _ROWS, _GROUPS, _BETWEEN = 0x1, 0x2, 0x4, 0x8, 0x10
_START_UNBOUNDED, _END_UNBOUNDED, _START_CURRENT, _END_CURRENT = 0x20, 0x100, 0x200, 0x400
_START_PRECEDING, _END_PRECEDING, _START_FOLLOWING, _END_FOLLOWING = 0x800, 0x1000, 0x2000, 0x4000
_EXCLUSIONS: Final = {0x8000: "CURRENT ROW", 0x10000: "GROUP", 0x20000: "TIES"}
#: Functions for which SQL has its own syntax.
_IN_WORDS: Final = frozenset(("timezone", "extract", "overlaps", "position", "substring", "overlay", "normalize"))
_TRIMS: Final = frozenset(("btrim", "ltrim", "rtrim"))


def analyse_call(place: Place, node: Any) -> Node:
    """FuncCall in all its forms."""
    names = names_of(node.funcname)
    if node.func_variadic or any(type(item).__name__ == "NamedArgExpr" for item in node.args or ()):
        raise AsWrittenError
    given = [analyse(place, item) for item in node.args or ()]
    order = tuple(sorted_by(item, as_text(analyse(place, item.node))) for item in node.agg_order or ())
    if node.agg_within_group:
        return _ordered_set(place, node, names[-1], given, order)
    found = _resolved(place, names, given)
    if isinstance(found, TypeCall):  # int4(x) is a cast
        return coerce(place, given[0], found.target, implicit=False)
    if found is None:
        raise AsWrittenError
    call = _called(place, found, given)
    if found.function.kind == "f":
        return _in_words(call, node)
    return Aggregate(
        call.name,
        call.arguments,
        call.oid,
        bool(node.agg_star),
        bool(node.agg_distinct),
        order,
        None if node.agg_filter is None else condition(place, node.agg_filter),
        variadic=call.variadic,
        over=None if node.over is None else _over(place, node.over),
    )


def _resolved(place: Place, names: Sequence[str], given: Sequence[Node]) -> Candidate | TypeCall | None:
    """The function that a call means: PostgreSQL's own or a user's."""
    users: list[PgProc] = []
    if not place.is_kept:
        schema = names[-2] if len(names) > 1 else None
        users = [item.proc for item in find_functions(place.binding, names[-1], schema)]
    if len(names) > 1 and names[-2] != "pg_catalog" and (not users or functions(names[-1])):
        raise AsWrittenError
    return function_call(names[-1], place.bases(given), () if names[-2:-1] == ["pg_catalog"] else users)


def _called(place: Place, found: Candidate, given: Sequence[Node]) -> Call:
    """A call with its arguments converted to the function's parameter types."""
    function, targets = found.function, found.arguments
    sources = place.bases(given)
    kinds = (polymorphic_types(sources, targets) or {}) if ANYTHING.intersection(targets) else {}
    wanted = [oid if oid == ANY else kinds.get(oid, oid) for oid in targets]
    if UNKNOWN in wanted:
        raise AsWrittenError
    arguments = tuple(coerce(place, item, oid) for item, oid in zip(given, wanted, strict=True))
    result = result_type(function.result, [place.base(item.oid) for item in arguments], targets)
    if result is None:
        raise AsWrittenError
    call = Call(_name(place, function), arguments, result)
    if not found.spread or function.variadic == ANY:
        return call
    return as_variadic(place, call, wanted[-1], len(targets) - len(function.arguments) + 1)


def _name(place: Place, function: PgProc) -> str:
    user = place.catalog.function(function.oid) if function.oid >= 16384 else None
    return quote_name(function.name) if user is None else prefix(user.schema) + quote_name(user.name)


def _in_words(call: Call, node: Any) -> Call:
    if node.funcformat != CoercionForm.COERCE_SQL_SYNTAX:
        return call
    if call.name.strip('"') not in _IN_WORDS | _TRIMS:
        raise AsWrittenError
    return Call(call.name.strip('"'), call.arguments, call.oid, syntax=True)


def _ordered_set(place: Place, node: Any, name: str, direct: Sequence[Node], order: tuple[SortItem, ...]) -> Node:
    """WITHIN GROUP; the sorted arguments come after the direct ones."""
    if len(node.funcname) > 1 or node.over is not None:
        raise AsWrittenError
    values = [item.node for item in order]
    found = function_call(name, place.bases([*direct, *values]))
    if not isinstance(found, Candidate) or found.spread:
        raise AsWrittenError
    call = _called(place, found, [*direct, *values])
    count = len(direct)
    sorts = (
        SortItem(value, item.descending, item.nulls_first)
        for value, item in zip(call.arguments[count:], order, strict=True)
    )
    where = None if node.agg_filter is None else condition(place, node.agg_filter)
    return Aggregate(call.name, call.arguments[:count], call.oid, False, False, tuple(sorts), where, within=True)


# --- windows ---------------------------------------------------------------------------------------------------------


def _over(place: Place, node: Any) -> Frame:
    """OVER name or OVER (...)."""
    if node.name is not None:
        return next(item for item in place.windows if item.name == node.name)
    return frame(place, node)


def frame(place: Place, node: Any) -> Frame:
    """A window's definition."""
    refers = None if node.refname is None else next(item for item in place.windows if item.name == node.refname)
    partition = tuple(as_text(analyse(place, item)) for item in node.partitionClause or ())
    order = tuple(sorted_by(item, as_text(analyse(place, item.node))) for item in node.orderClause or ())
    if any(isinstance(item, Const) for item in (*partition, *(key.node for key in order))):
        raise AsWrittenError
    words, offsets = _frame_words(place, node, order or (refers.order if refers is not None else ()))
    return Frame(node.name, None if refers is None else refers.name, partition, order, words, offsets)


def _frame_words(
    place: Place, node: Any, order: tuple[SortItem, ...]
) -> tuple[tuple[str | None, ...], tuple[Node, ...]]:
    flags = int(node.frameOptions)
    if not flags & _NONDEFAULT:
        return (), ()
    words: list[str | None] = ["RANGE" if flags & _RANGE else "ROWS" if flags & _ROWS else "GROUPS"]
    offsets: list[Node] = []

    def bound(unbounded: int, current: int, preceding: int, given: Any, side: str) -> None:
        if flags & unbounded:
            words.append(f"UNBOUNDED {side}")
        elif flags & current:
            words.append("CURRENT ROW")
        else:
            offsets.append(_offset(place, analyse(place, given), flags, order))
            words.extend((None, "PRECEDING" if flags & preceding else "FOLLOWING"))

    if flags & _BETWEEN:
        words.append("BETWEEN")
    bound(_START_UNBOUNDED, _START_CURRENT, _START_PRECEDING, node.startOffset, "PRECEDING")
    if flags & _BETWEEN:
        words.append("AND")
        bound(_END_UNBOUNDED, _END_CURRENT, _END_PRECEDING, node.endOffset, "FOLLOWING")
    words += [f"EXCLUDE {words_}" for flag, words_ in _EXCLUSIONS.items() if flags & flag]
    return tuple(words), tuple(offsets)


def _offset(place: Place, value: Node, flags: int, order: tuple[SortItem, ...]) -> Node:
    """The offset of a frame: bigint for ROWS and GROUPS; for RANGE the type that is added to the sort key, an interval
    for a date (transformFrameOffset)."""
    if not flags & _RANGE:
        return coerce(place, value, _INT8)
    if isinstance(value, Const) and value.oid == UNKNOWN and len(order) == 1:
        kind = by_oid(place.base(order[0].node.oid))
        return coerce(place, value, 1186 if kind.name in ("date", "timestamp", "timestamptz", "time") else kind.oid)
    return value
