"""Aggregates WITHIN GROUP: ordered-set aggregates, and the ranks of a hypothetical row.

Owns: percentile_cont, percentile_disc and mode, which become aggregate calls with the group's ORDER BY; and rank,
dense_rank, percent_rank and cume_dist of a hypothetical row, which become counts of the rows before it.
https://www.postgresql.org/docs/15/functions-aggregate.html#FUNCTIONS-ORDEREDSET-TABLE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import KEYED
from catalog.values.types import BOOL, FLOAT8, INT4, INT8, INTERVAL, SqlType, array, record
from planner.algebra.nodes import AggregateCall, Call, Case, Cast, Literal, Scalar, SortKey
from planner.bind.calls.aggregation.aggregates import bind_filter, check_place, register
from planner.bind.calls.aggregation.outer_levels import owner
from planner.bind.calls.aggregation.sort_order import direction
from planner.bind.calls.operator_calls.operation import operate
from planner.bind.calls.overloading.choice import choose_overload, no_function
from planner.bind.calls.overloading.overloads import Overload, chosen_function, table
from planner.bind.calls.overloading.polymorphic import input_is_unknown
from planner.bind.conversion.coercion import array_of, coerce, common_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment

_KNOWN: Final = {
    "percentile_cont": table(
        [
            Overload("percentile_cont", ("float8", "float8"), "float8"),
            Overload("percentile_cont", ("_float8", "float8"), "_float8"),
            Overload("percentile_cont", ("float8", "interval"), "interval"),
            Overload("percentile_cont", ("_float8", "interval"), "_interval"),
        ]
    ),
    "percentile_disc": table(
        [
            Overload("percentile_disc", ("float8", "anyelement"), "anyelement"),
            Overload("percentile_disc", ("_float8", "anyelement"), "anyarray"),
        ]
    ),
    "mode": table([Overload("mode", ("anyelement",), "anyelement")]),
}
#: What percentile_cont() yields, by its key's type.
_RESULTS: Final = {"float8": FLOAT8, "interval": INTERVAL}
#: Aggregates that exist only WITHIN GROUP.
ORDERED_SETS: Final = frozenset(_KNOWN)
_RANKS: Final = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))


def bind_ordered_set(env: Environment, node: Any) -> Scalar:
    """A call WITHIN GROUP. Raises 42809 for an aggregate that takes none."""
    name = names_of(node.funcname)[-1]
    if node.over is not None:
        raise env.error("0A000", f"OVER is not supported for ordered-set aggregate {name}", node)
    inside = env.inside_aggregate()
    direct = [inside.bind(item) for item in node.args or ()]
    keys = [inside.bind(item.node) for item in node.agg_order]
    condition = bind_filter(env.without_aggregates("FILTER"), node)
    if name not in ORDERED_SETS | _RANKS:
        if chosen_function(name, tuple(item.type.oid for item in (*direct, *keys))) is None:
            raise no_function(env, [*direct, *keys], node)
        message = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        raise env.error("42809", message, node)
    env = owner(env, [*direct, *keys, *([condition] if condition is not None else ())], node)
    check_place(env, node)
    if name in _RANKS:
        assert env.groups is not None, "check_place has looked"
        env.groups.direct += [item for item in direct if not isinstance(item, Literal)]
        return _rank(env, name, direct, keys, condition, node)
    return _set(env, name, direct, keys, condition, node)


# --- ordered sets -----------------------------------------------------------------------------------------------------


def _set(
    env: Environment, name: str, direct: list[Scalar], keys: list[Scalar], condition: Scalar | None, node: Any
) -> Scalar:
    chosen = choose_overload(env, name, [*direct, *keys], node, _KNOWN[name])
    kind = _RESULTS.get(chosen.arguments[1]) if name == "percentile_cont" else None
    if kind is None and keys[0].type.name == "unknown":
        raise input_is_unknown()
    kind = kind or keys[0].type
    key = coerce(env.binding, keys[0], kind, "implicit", node.agg_order[0].node)
    assert key is not None, "the overload was chosen so that its arguments coerce"
    order = (SortKey(key, *direction(env.binding, node.agg_order[0], key.type)),)
    if key.type.name in KEYED:  # whose lists are of keys
        what = f"{name}() of values of type {key.type}"
        raise unsupported(what, "Use min(), max() or a window.", env.binding.position(node))

    def one(*arguments: Scalar) -> Scalar:
        if name == "percentile_cont" and kind == INTERVAL:
            return _between_intervals(env, key, arguments[0], order, condition, node)
        if not all(isinstance(item, Literal) for item in arguments):
            return _computed(env, name, key, arguments, order, condition, node)
        return register(env, name, AggregateCall(name, arguments, kind, filter=condition, order_by=order), node)

    if chosen.arguments[0] != "_float8":
        return one(*(_fraction(env, item, place) for item, place in zip(direct, node.args or (), strict=True)))
    count = register(env, "count", AggregateCall("count", (key,), INT8, filter=condition), node)
    fractions = _fractions(env, direct[0], node.args[0])
    if fractions is None:
        return Literal(None, array(kind))
    some = Call("gt", (count, Literal(0, INT8)), BOOL)
    return Case(((some, array_of([one(item) for item in fractions], kind)),), Literal(None, array(kind)), array(kind))


def _computed(
    env: Environment,
    name: str,
    key: Scalar,
    fractions: tuple[Scalar, ...],
    order: tuple[SortKey, ...],
    condition: Scalar | None,
    node: Any,
) -> Scalar:
    """A percentile of a share that is known when the query runs: taken of the values, gathered in their order."""
    return Call(f"{name}_at", (_gathered(env, name, key, order, condition, node), *fractions), key.type)


def _gathered(
    env: Environment, name: str, key: Scalar, order: tuple[SortKey, ...], condition: Scalar | None, node: Any
) -> Scalar:
    """A group's values in their order, without NULLs."""
    present: Scalar = Call("is_not_null", (key,), BOOL)
    only = present if condition is None else Call("and", (condition, present), BOOL)
    return register(env, name, AggregateCall("array_agg", (key,), array(key.type), filter=only, order_by=order), node)


def _between_intervals(
    env: Environment, key: Scalar, share: Scalar, order: tuple[SortKey, ...], condition: Scalar | None, node: Any
) -> Scalar:
    """percentile_cont() of intervals, by their own arithmetic (orderedsetaggs.c, interval_lerp)."""
    if not isinstance(share, Literal):
        what = "a percentile of intervals whose share is computed"
        raise unsupported(what, "Give the share as a constant.", env.binding.position(node))
    values = _gathered(env, "percentile_cont", key, order, condition, node)
    steps = Call("sub", (Call("cardinality", (values,), INT4), Literal(1, INT4)), INT4)
    place = Call("mul", (share, Cast(steps, FLOAT8)), FLOAT8)
    floor = Call("floor", (place,), FLOAT8)

    def at(number: Scalar) -> Scalar:
        first = Call("add", (Cast(number, INT4), Literal(1, INT4)), INT4)
        return Call("subscript", (values, first), INTERVAL)

    def combined(symbol: str, left: Scalar, right: Scalar) -> Scalar:
        return operate(env, symbol, left, right, node, (node, node))

    low, high = at(floor), at(Call("ceil", (place,), FLOAT8))
    step = combined("*", combined("-", high, low), Call("sub", (place, floor), FLOAT8))
    return combined("+", step, low)


def _fractions(env: Environment, scalar: Scalar, node: Any) -> list[Scalar] | None:
    """The fractions of an array, of which there are as many percentiles; None where it is NULL."""
    found = coerce(env.binding, scalar, array(FLOAT8), "implicit", node)
    if isinstance(found, Call) and found.function == "array":
        return [_fraction(env, item, node) for item in found.arguments]
    if not isinstance(found, Literal):
        raise unsupported("percentiles of a computed array", "Write ARRAY[...].", env.binding.position(node))
    if found.value is None:
        return None
    assert isinstance(found.value, tuple)
    return [_fraction(env, Literal(item, FLOAT8), node) for item in found.value]


def _fraction(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    found = coerce(env.binding, scalar, FLOAT8, "implicit", node)
    assert found is not None, "the overload was chosen so that its arguments coerce"
    if isinstance(found, Literal) and found.value is not None and not 0 <= float(str(found.value)) <= 1:
        raise SqlError("22003", f"percentile value {found.value:g} is not between 0 and 1")
    return found


# --- hypothetical rows ------------------------------------------------------------------------------------------------


def _rank(
    env: Environment, name: str, direct: list[Scalar], keys: list[Scalar], condition: Scalar | None, node: Any
) -> Scalar:
    """The rank that a row of the direct arguments would have: from the number of rows before it, or not after it.

    The arguments are the same for all rows of a group, so each row is compared with what they are for itself.
    """
    if len(direct) != len(keys):
        error = no_function(env, [*direct, *keys], node)
        error.hint = (
            f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments"
            f" (here {len(direct)}) must match the number of ordering columns (here {len(keys)})."
        )
        raise error
    pairs = [_alike(env, key, value, node, place) for place, (key, value) in enumerate(zip(keys, direct, strict=True))]
    before, alike = _before(env, pairs, node)

    def count(*rows: Scalar | None, of: Scalar | None = None) -> Scalar:
        wanted = [item for item in (condition, *rows) if item is not None]
        only = wanted[0] if len(wanted) == 1 else Call("and", tuple(wanted), BOOL) if wanted else None
        call = AggregateCall("count", () if of is None else (of,), INT8, distinct=of is not None, filter=only)
        return register(env, name, call, node)

    one = Literal(1, INT8)
    match name:
        case "rank":
            return Call("add", (count(before), one), INT8)
        case "dense_rank":
            if len(pairs) > 1:  # different rows, of which none is NULL as a whole
                kind = record(*((f"f{place}", key.type) for place, (key, _) in enumerate(pairs, 1)))
                row = Call("row", tuple(key for key, _ in pairs), kind)
                return Call("add", (count(before, of=row), one), INT8)
            null = Call("is_null", (pairs[0][0],), BOOL)
            nulls = Call("least", (count(Call("and", (before, null), BOOL)), one), INT8)
            return Call("add", (Call("add", (count(before, of=pairs[0][0]), nulls), INT8), one), INT8)
        case "percent_rank":
            rows = count()
            share = Call("div", (Cast(count(before), FLOAT8), Cast(rows, FLOAT8)), FLOAT8)
            return Case(((Call("eq", (rows, Literal(0, INT8)), BOOL), Literal(0.0, FLOAT8)),), share, FLOAT8)
        case _:
            upto = Call("add", (count(Call("or", (before, alike), BOOL)), one), INT8)
            rows = Call("add", (count(), one), INT8)
            return Call("div", (Cast(upto, FLOAT8), Cast(rows, FLOAT8)), FLOAT8)


def _alike(env: Environment, key: Scalar, value: Scalar, node: Any, place: int) -> tuple[Scalar, Scalar]:
    """A key and the hypothetical row's value of it, in their common type."""
    nodes = (node.agg_order[place].node, node.args[place])
    kind: SqlType = common_type([key.type, value.type], "WITHIN GROUP", lambda at: env.binding.start(nodes[at]))
    found = [
        coerce(env.binding, item, kind, "implicit", where) for item, where in zip((key, value), nodes, strict=True)
    ]
    assert found[0] is not None, "common_type chose a type that both coerce to"
    assert found[1] is not None, "common_type chose a type that both coerce to"
    return found[0], found[1]


def _before(env: Environment, pairs: list[tuple[Scalar, Scalar]], node: Any) -> tuple[Scalar, Scalar]:
    """Whether a row comes before the hypothetical one, and whether it is its equal."""
    compare: Callable[[str, Scalar, Scalar], Scalar] = lambda symbol, left, right: operate(  # noqa: E731
        env, symbol, left, right, node, (node, node)
    )
    before: Scalar = Literal(False, BOOL)
    alike: Scalar = Literal(True, BOOL)
    for (key, value), item in zip(pairs, node.agg_order, strict=True):
        descending, nulls_first = direction(env.binding, item, key.type)
        null, other = (key, value) if nulls_first else (value, key)
        apart = Call("and", (Call("is_null", (null,), BOOL), Call("is_not_null", (other,), BOOL)), BOOL)
        lower = Call("or", (apart, compare(">" if descending else "<", key, value)), BOOL)
        before = Call("or", (before, Call("and", (alike, lower), BOOL)), BOOL)
        same = Call("or", (compare("=", key, value), _both_null(key, value)), BOOL)
        alike = Call("and", (alike, same), BOOL)
    return before, alike


def _both_null(key: Scalar, value: Scalar) -> Scalar:
    return Call("and", (Call("is_null", (key,), BOOL), Call("is_null", (value,), BOOL)), BOOL)
