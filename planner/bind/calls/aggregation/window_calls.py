"""Window functions: calls with OVER become window calls of their query level.

Owns: the functions that exist only over windows, and what OVER and the WINDOW clause say of partitions, order and
frame.
https://www.postgresql.org/docs/15/sql-expressions.html#SYNTAX-WINDOW-FUNCTIONS
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, FLOAT8, INT4, INT8, INTERVAL, TEXT, SqlType
from planner.algebra.construction import has_subquery
from planner.algebra.functions import WINDOW_FUNCTIONS
from planner.algebra.nodes import (
    Call,
    ColumnRef,
    FrameBound,
    FrameExclusion,
    FrameMode,
    Literal,
    Scalar,
    SortKey,
    WindowCall,
)
from planner.algebra.walk import used_columns
from planner.bind.calls.aggregation.aggregates import (
    AGGREGATE_NAMES,
    aggregate_call,
    bind_filter,
    may_overflow,
    size_of,
)
from planner.bind.calls.aggregation.carried_aggregates import of_carriers, over_carriers
from planner.bind.calls.aggregation.sort_order import check_sortable, direction
from planner.bind.calls.overloading.call_forms import bare_call, is_fixed
from planner.bind.calls.overloading.choice import choose_overload
from planner.bind.calls.overloading.overloads import Overload, Table, table
from planner.bind.calls.overloading.polymorphic import input_is_unknown
from planner.bind.conversion.coercion import NUMBERS, coerce, coerced_implicitly, common_type
from planner.bind.conversion.requirements import required
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Binding, Environment

#: Results by name; None: the type of the value that the call is about.
_RESULTS: Final[dict[str, SqlType | None]] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), INT8),
    **dict.fromkeys(("percent_rank", "cume_dist"), FLOAT8),
    "ntile": INT4,
    **dict.fromkeys(("lag", "lead", "first_value", "last_value", "nth_value"), None),
}
_SIGNATURES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "percent_rank", "cume_dist"), ((),)),
    "ntile": (("int4",),),
    **dict.fromkeys(
        ("lag", "lead"), (("anyelement",), ("anyelement", "int4"), ("anycompatible", "int4", "anycompatible"))
    ),
    **dict.fromkeys(("first_value", "last_value"), (("anyelement",),)),
    "nth_value": (("anyelement", "int4"),),
}
_OVERLOADS: Final[dict[str, Table]] = {
    name: table(Overload(name, signature, "") for signature in signatures) for name, signatures in _SIGNATURES.items()
}


def definitions(binding: Binding, nodes: Iterable[Any] | None) -> dict[str, Any]:
    """The WINDOW clause by name. Raises 42P20 for a name that comes twice."""
    found: dict[str, Any] = {}
    for node in nodes or ():
        if node.name in found:
            raise SqlError("42P20", f'window "{node.name}" is already defined', position=binding.position(node))
        found[node.name] = node
    return found


def bind_window(env: Environment, node: Any) -> Scalar:
    """A call with OVER: the query level's row then has its value as a column."""
    name = names_of(node.funcname)[-1]
    if env.in_aggregate:
        raise env.error("42803", "aggregate function calls cannot contain window function calls", node)
    if env.in_window:
        raise env.error("42P20", "window function calls cannot be nested", node)
    if env.windows is None:
        raise env.error("42P20", f"window functions are not allowed in {env.clause}", node)
    inner = env.inside_window()
    over = _definition(env, node.over)
    call = replace(
        _call(inner, name, node),
        partition=_partition(inner, over),
        order_by=_order(inner, over),
    )
    kind, call = call.type, over_carriers(_framed(inner, call, over))
    found = ColumnRef(env.windows.add(env.binding, name, call))
    env.binding.remember(found, node, name)
    if call.type != kind:
        return of_carriers(found, kind)
    if not may_overflow(call):
        return found
    greatest = replace(call, function="max", arguments=(size_of(call),), type=FLOAT8)
    return Call("finite", (found, ColumnRef(env.windows.add(env.binding, "max", greatest))), FLOAT8)


# --- the function -----------------------------------------------------------------------------------------------------


def _call(env: Environment, name: str, node: Any) -> WindowCall:
    """The function with its arguments and FILTER."""
    if node.agg_distinct:
        raise env.error("0A000", "DISTINCT is not implemented for window functions", node)
    if node.agg_order:
        raise env.error("0A000", "aggregate ORDER BY is not implemented for window functions", node)
    if name in AGGREGATE_NAMES:
        found = aggregate_call(env, node)
        return WindowCall(found.function, found.arguments, found.type, filter=bind_filter(env, node))
    if name not in WINDOW_FUNCTIONS:
        env.bind(bare_call(node))  # 42883 where it is no function at all
        message = f"OVER specified, but {name} is not a window function nor an aggregate function"
        raise env.error("42809", message, node)
    if node.agg_filter is not None:
        raise env.error("0A000", "FILTER is not implemented for non-aggregate window functions", node)
    arguments = [env.bind(item) for item in node.args or ()]
    chosen = choose_overload(env, name, arguments, node, _OVERLOADS[name])
    kind = _value_type(env, arguments, chosen, node)
    coerced = tuple(
        coerced_implicitly(env.binding, item, INT4 if declared == "int4" else kind, place)
        for item, declared, place in zip(arguments, chosen.arguments, node.args or (), strict=True)
    )
    return WindowCall(name, coerced, _RESULTS[name] or kind)


def _value_type(env: Environment, arguments: list[Scalar], chosen: Overload, node: Any) -> SqlType:
    """What anyelement and anycompatible stand for."""
    values = [
        (item.type, place)
        for item, declared, place in zip(arguments, chosen.arguments, node.args or (), strict=True)
        if declared != "int4"
    ]
    if not values:
        return INT4
    if len(values) == 1:
        if values[0][0].name == "unknown":
            raise input_is_unknown()
        return values[0][0]
    return common_type([kind for kind, _ in values], "function", lambda _: env.binding.start(node))


def _known(kind: SqlType) -> SqlType:
    return TEXT if kind.name == "unknown" else kind


# --- the window -------------------------------------------------------------------------------------------------------


class _Definition(Struct, frozen=True):
    """What OVER says, with what it takes from the WINDOW clause."""

    partition: tuple[Any, ...]
    order: tuple[Any, ...]
    options: int
    start: Any
    end: Any
    node: Any


def _definition(env: Environment, node: Any) -> _Definition:
    """OVER w is w as it is; OVER (w ...) adds to it. Raises 42704 and 42P20."""
    if node.name:  # OVER w
        return _own(_named(env, node.name, node), env)
    return _own(node, env)


def _own(node: Any, env: Environment) -> _Definition:
    partition, order = tuple(node.partitionClause or ()), tuple(node.orderClause or ())
    if node.refname:
        base = _own(_named(env, node.refname, node), env)
        if partition:
            raise env.error("42P20", f'cannot override PARTITION BY clause of window "{node.refname}"', node)
        if order and base.order:
            raise env.error("42P20", f'cannot override ORDER BY clause of window "{node.refname}"', node)
        if base.options & _NON_DEFAULT:
            bare = not order and not node.frameOptions & _NON_DEFAULT
            hint = "Omit the parentheses in this OVER clause." if bare else None
            raise env.error("42P20", f'cannot copy window "{node.refname}" because it has a frame clause', node, hint)
        partition, order = base.partition, order or base.order
    return _Definition(partition, order, node.frameOptions, node.startOffset, node.endOffset, node)


def _named(env: Environment, name: str, node: Any) -> Any:
    assert env.windows is not None
    found = env.windows.definitions.get(name)
    if found is None:
        raise env.error("42704", f'window "{name}" does not exist', node)
    return found


def _partition(env: Environment, over: _Definition) -> tuple[Scalar, ...]:
    return tuple(_sortable(env, env.bind(item), item) for item in over.partition)


def _order(env: Environment, over: _Definition) -> tuple[SortKey, ...]:
    keys = [_sortable(env, env.bind(item.node), item.node) for item in over.order]
    return tuple(
        SortKey(key, *direction(env.binding, item, key.type)) for key, item in zip(keys, over.order, strict=True)
    )


def _sortable(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    check_sortable(env, scalar, node)
    return coerced_implicitly(env.binding, scalar, _known(scalar.type), node)


# --- the frame (parsenodes.h, FRAMEOPTION_*) --------------------------------------------------------------------------

_NON_DEFAULT: Final = 0x1
_MODES: Final[dict[int, FrameMode]] = {0x2: "range", 0x4: "rows", 0x8: "groups"}
_STARTS: Final[dict[int, FrameBound]] = {
    0x20: "unbounded_preceding",
    0x200: "current_row",
    0x800: "preceding",
    0x2000: "following",
}
_ENDS: Final[dict[int, FrameBound]] = {
    0x100: "unbounded_following",
    0x400: "current_row",
    0x1000: "preceding",
    0x4000: "following",
}
_EXCLUSIONS: Final[dict[int, FrameExclusion]] = {0x8000: "current_row", 0x10000: "group", 0x20000: "ties"}
_TIMES: Final = ("date", "timestamp", "timestamptz", "time", "interval")


def _framed(env: Environment, call: WindowCall, over: _Definition) -> WindowCall:
    """The call with its frame. Raises 42P20 and 0A000."""
    mode = _option(over.options, _MODES, "range")
    if mode == "groups" and not call.order_by:
        raise env.error("42P20", "GROUPS mode requires an ORDER BY clause", over.node)
    offsets = tuple(
        _offset(env, replace(call, mode=mode), over, item, words)
        for item, words in ((over.start, "starting"), (over.end, "ending"))
        if item is not None
    )
    return replace(
        call,
        mode=mode,
        start=_option(over.options, _STARTS, "unbounded_preceding"),
        end=_option(over.options, _ENDS, "current_row"),
        exclude=_option(over.options, _EXCLUSIONS, "no_others"),
        offsets=offsets,
    )


def _option(options: int, meanings: dict[int, Any], default: str) -> Any:
    return next((meaning for bit, meaning in meanings.items() if options & bit), default)


def _offset(env: Environment, call: WindowCall, over: _Definition, node: Any, words: str) -> Scalar:
    """The distance of a frame's bound: rows or groups, or of the order's own type in RANGE."""
    clause = call.mode.upper()
    scalar = env.without_aggregates(clause).bind(node)
    if has_subquery(scalar):
        instead = "Compute the number in an earlier query."
        raise unsupported("a subquery in the frame of a window", instead, env.binding.start(node))
    if used_columns(scalar):
        raise env.error("42P10", f"argument of {clause} must not contain variables", node)
    target = _range_type(env, call, over, node) if call.mode == "range" else INT8
    if target.name in ("int2", "int4") and scalar.type.name in ("int2", "int4", "int8"):
        target = scalar.type
    found = coerce(env.binding, scalar, target, "implicit" if call.mode == "range" else "assignment", node)
    if found is None:
        if call.mode == "range":
            message = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type "
            message += f"{display(call.order_by[0].expression.type)} and offset type {display(scalar.type)}"
            hint = "Cast the offset value to an appropriate type."
            raise env.error_at("0A000", message, node, hint=hint)
        message = f"argument of {clause} must be type {display(target)}, not type {display(scalar.type)}"
        raise env.error_at("42804", message, node)
    null, negative = f"frame {words} offset must not be null", f"frame {words} offset must not be negative"
    if call.mode == "range":
        negative = "invalid preceding or following size in window function"
    if not isinstance(found, Literal):
        what = f"a {words} offset of a window frame that is not a constant"
        return _checked_offset(
            env.binding, found, null, negative, unsupported(what, position=env.binding.position(node))
        )
    if found.value is None:
        raise SqlError("22004", null)
    if _is_negative(found.value):
        raise SqlError("22013", negative)
    return found


def _checked_offset(binding: Binding, offset: Scalar, null: str, negative: str, refusal: SqlError) -> Scalar:
    """A distance that is known when the statement runs, of parameters."""
    if binding.streams or not is_fixed(offset):
        raise refusal
    zero = Literal((0, 0, 0) if offset.type.name == "interval" else 0, offset.type)
    positive = required(Call("ge", (offset, zero), BOOL), offset, "22013", negative)
    return required(Call("is_not_null", (offset,), BOOL), positive, "22004", null)


def _range_type(env: Environment, call: WindowCall, over: _Definition, node: Any) -> SqlType:
    """The type of a distance in the order's values."""
    if len(call.order_by) != 1:
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise env.error("42P20", message, over.node)
    kind = call.order_by[0].expression.type
    if kind.name in NUMBERS:
        return kind
    if kind.name in _TIMES:
        return INTERVAL
    message = f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {display(kind)}"
    raise env.error("0A000", message, node)


def _is_negative(value: object) -> bool:
    if isinstance(value, tuple):
        months, days, micros = cast(tuple[int, int, int], value)
        return (months * 30 + days) * 86_400_000_000 + micros < 0
    return bool(value < 0)  # type: ignore[operator]
