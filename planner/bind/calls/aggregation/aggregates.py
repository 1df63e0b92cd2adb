"""Aggregate calls: result types, DISTINCT, FILTER and ORDER BY inside, and where aggregates may stand.

Owns: PostgreSQL's aggregate names and signatures and the errors 42803. Grouping itself is
``planner.bind.queries.grouping``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.errors import unsupported
from catalog.values.multiranges import multirange_of
from catalog.values.opaque import KEYED, check_equality, refuse_order
from catalog.values.types import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    QUOTIENT,
    RANGES,
    SPREAD,
    TEXT,
    SqlType,
    array,
    by_name,
    numeric,
    plain,
    shaped,
)
from planner.algebra.nodes import AggregateCall, Call, Case, Cast, ColumnRef, Literal, Scalar, SortKey, WindowCall
from planner.bind.calls.aggregation.carried_aggregates import of_carriers, over_carriers
from planner.bind.calls.aggregation.outer_levels import owner
from planner.bind.calls.aggregation.sort_order import direction
from planner.bind.calls.families.json_functions import (
    aggregated,
)
from planner.bind.calls.overloading.choice import NO_MATCH, choose_overload
from planner.bind.calls.overloading.overloads import ANY_SPAN, Overload, Table, table
from planner.bind.conversion.coercion import coerce, target_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.collected_calls import GROUPING
from planner.bind.state.environment import Environment

_CANONICAL: Final = {"every": "bool_and", "stddev": "stddev_samp", "variance": "var_samp"}
_SPREADS: Final = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
_NUMBERS: Final = ("int2", "int4", "int8", "float4", "float8", "numeric")
_INTEGERS: Final = ("int2", "int4", "int8")
#: Statistics of pairs of numbers (Y, X), of those in which none is NULL.
REGRESSIONS: Final = (
    *("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2"),
    *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
)
_OVERFLOWING: Final = frozenset(("sum", "avg", *_SPREADS, *REGRESSIONS)) - {"regr_count"}
_MOST_GROUPED: Final = 31
_ORDERED: Final = (
    *_NUMBERS,
    "text",
    "bpchar",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
    "oid",
    "anyenum",
    "money",
    "xid8",
    *KEYED,
)


def _table() -> dict[str, Table]:
    def unary(name: str, kinds: tuple[str, ...]) -> Table:
        return table(Overload(name, (kind,), kind) for kind in kinds)

    return {
        "count": table([Overload("count", ("any",), "int8")]),
        "sum": unary("sum", (*_NUMBERS, "interval", "money")),
        "avg": unary("avg", (*_NUMBERS, "interval")),
        "min": unary("min", (*_ORDERED, "anyarray")),
        "max": unary("max", (*_ORDERED, "anyarray")),
        **{name: unary("bool_and", ("bool",)) for name in ("bool_and", "every")},
        **{name: unary(name, (*_INTEGERS, "bit")) for name in ("bit_and", "bit_or", "bit_xor")},
        **{name: table([Overload(name, ("float8", "float8"), "float8")]) for name in REGRESSIONS},
        "bool_or": unary("bool_or", ("bool",)),
        "range_agg": table(Overload("range_agg", (kind,), "anymultirange") for kind in ANY_SPAN),
        "range_intersect_agg": unary("range_intersect_agg", ANY_SPAN),
        **{name: unary(_CANONICAL.get(name, name), _NUMBERS) for name in _SPREADS},
        "string_agg": table([Overload("string_agg", (kind, kind), kind) for kind in ("text", "bytea")]),
        "array_agg": table(Overload("array_agg", (kind,), "array") for kind in ("anynonarray", "anyarray")),
        **{f"{kind}_agg": table([Overload(f"{kind}_agg", ("anyelement",), kind)]) for kind in ("json", "jsonb")},
        **{
            f"{kind}_object_agg": table([Overload(f"{kind}_object_agg", ("any", "any"), kind)])
            for kind in ("json", "jsonb")
        },
    }


_OVERLOADS: Final = _table()
DOCUMENTS: Final = frozenset(("json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"))
AGGREGATE_NAMES: Final = frozenset(_OVERLOADS)


def bind_aggregate(env: Environment, node: Any) -> Scalar:
    """An aggregate call: registered with the query level, whose row then has its value as a column."""
    if env.scope.outer is None:
        check_place(env, node)
    call = aggregate_call(env.inside_aggregate(), node)
    condition = bind_filter(env.without_aggregates("FILTER"), node)
    for argument, place in zip(call.arguments, node.args or (), strict=False):
        if node.agg_distinct:
            check_equality(argument.type, partial(env.binding.start, place))
            if call.function == "array_agg" and not call.order_by:
                refuse_order(argument.type, "array_agg(DISTINCT ...)", partial(env.binding.position, node))
    kind, call = call.type, over_carriers(call)
    call = replace(call, distinct=bool(node.agg_distinct), filter=condition)
    env = owner(env, [call], node)
    check_place(env, node)
    found = register(env, names_of(node.funcname)[-1], call, node)
    if call.type != kind:
        return of_carriers(found, kind)
    if call.function == "array_agg" and names_of(node.funcname)[-1] in DOCUMENTS:
        document = Call("json_items", (found,), JSON)
        return Cast(document, JSONB, True) if names_of(node.funcname)[-1] == "jsonb_agg" else document
    if call.function == "array_agg" and (inner := call.arguments[0].type).element is not None:
        return Call("gathered", (found,), shaped(inner.element))
    if not may_overflow(call):
        return found
    greatest = AggregateCall("max", (size_of(call),), FLOAT8, filter=condition)
    return Call("finite", (found, register(env, "max", greatest, node)), FLOAT8)


def may_overflow(call: AggregateCall | WindowCall) -> bool:
    """Whether the result may leave what a double holds although no argument is infinite: 22003. Engines then make it
    infinite or NaN, so that the greatest size among the arguments tells an overflow from infinite arguments."""
    return call.function in _OVERFLOWING and call.arguments[0].type == FLOAT8


def size_of(call: AggregateCall | WindowCall) -> Scalar:
    """The arguments' size: of a pair, the greater."""
    sizes = tuple(Call("abs", (item,), FLOAT8) for item in call.arguments)
    return sizes[0] if len(sizes) == 1 else Call("greatest", sizes, FLOAT8)


def check_place(env: Environment, node: Any) -> None:
    """Whether an aggregate may stand here. Raises 42803."""
    if env.in_aggregate:
        raise env.error("42803", "aggregate function calls cannot be nested", node)
    if env.groups is None:
        raise env.error("42803", f"aggregate functions are not allowed in {env.clause}", node)


def register(env: Environment, name: str, call: AggregateCall, node: Any) -> ColumnRef:
    """The column of an aggregate that the query level computes."""
    assert env.groups is not None
    column = env.groups.add(env.binding, name, call)
    found = ColumnRef(column)
    env.binding.remember(found, node, name)
    return found


def bind_grouping(env: Environment, node: Any) -> Scalar:
    """GROUPING(keys), which ``planner.bind.queries.grouping`` replaces. Raises 42803 and 54023."""
    if len(node.args) > _MOST_GROUPED:
        raise env.error("54023", "GROUPING must have fewer than 32 arguments", node)
    arguments: list[Scalar] = []
    for item in node.args:
        scalar = env.bind(item)
        scalar = ColumnRef(scalar.column) if isinstance(scalar, ColumnRef) else scalar  # one of its own place
        env.binding.remember(scalar, item)
        arguments.append(scalar)
    env = owner(env, arguments, node)
    if env.groups is None or env.in_aggregate:
        raise env.error("42803", f"grouping operations are not allowed in {env.clause}", node)
    env.groups.is_used = True
    return Call(GROUPING, tuple(arguments), INT4)


def aggregate_call(env: Environment, node: Any) -> AggregateCall:
    """The aggregate of a call with its arguments and ORDER BY, which ``env`` is for; without DISTINCT and FILTER."""
    if node.func_variadic:
        raise unsupported("a VARIADIC argument", position=env.binding.position(node))
    return _count_star(env, node) if node.agg_star else _over_arguments(env, names_of(node.funcname)[-1], node)


def _count_star(env: Environment, node: Any) -> AggregateCall:
    name = names_of(node.funcname)[-1]
    if name != "count":
        raise env.error("42883", f"function {name}() does not exist", node, hint=NO_MATCH)
    return AggregateCall("count", (), INT8)


def _over_arguments(env: Environment, name: str, node: Any) -> AggregateCall:
    if name in DOCUMENTS:
        return _of_documents(env, name, node)
    arguments = [env.bind(item) for item in node.args or ()]
    if name == "count" and not arguments:
        hint = "count(*) must be used to call a parameterless aggregate function"
        raise env.error("42809", hint, node)
    chosen = choose_overload(env, name, arguments, node, _OVERLOADS[name])
    coerced = tuple(
        _argument(env, item, target, place)
        for item, target, place in zip(arguments, chosen.arguments, node.args, strict=True)
    )
    for item, place in zip(coerced, node.args, strict=True):
        if node.agg_distinct and item.type.name == "json":
            raise env.error_at("42883", "could not identify an equality operator for type json", place)
    if name == "string_agg" and isinstance(coerced[1], Literal) and coerced[1].value is None:
        coerced = (coerced[0], Literal(b"" if chosen.result == "bytea" else "", by_name(chosen.result)))
    if name in REGRESSIONS and node.agg_distinct:
        raise unsupported(f"{name}(DISTINCT ...)", "Aggregate a SELECT DISTINCT.", env.binding.position(node))
    if chosen.name in ("min", "max") and chosen.arguments == ("anyarray",):
        _require_ordered(env, chosen.name, coerced[0].type, node)
    if name == "regr_count":
        paired = Call("is_not_null", (coerced[1],), BOOL)
        coerced = (Case(((paired, coerced[0]),), Literal(None, FLOAT8), FLOAT8),)
        return AggregateCall("count", coerced, INT8)
    return AggregateCall(chosen.name, coerced, _result(chosen, coerced), order_by=_order(env, node, coerced, arguments))


#: Elements that an engine orders as PostgreSQL does, and shows as they are.
_ORDERED_ELEMENTS: Final = frozenset(
    (*_INTEGERS, "float4", "float8", "bool", "text", "varchar", "date", "time", "timestamp", "timestamptz", "uuid")
)


def _require_ordered(env: Environment, name: str, kind: SqlType, node: Any) -> None:
    """Raises 0A000 for an extreme array of elements of which an engine has another order."""
    if kind.element is None or kind.element.name not in _ORDERED_ELEMENTS:
        raise unsupported(f"{name}() of {display(kind)}", "ORDER BY the array, LIMIT 1.", env.binding.position(node))


def _of_documents(env: Environment, name: str, node: Any) -> AggregateCall:
    """json_agg(value) and json_object_agg(key, value), whose values are made documents before they are gathered."""
    if node.agg_distinct:
        return _of_distinct(env, name, node)
    arguments = aggregated(env, name, node, _OVERLOADS[name])
    kind = by_name(name.partition("_")[0])
    return AggregateCall(name, arguments, kind, order_by=_order(env, node, arguments))


def _of_distinct(env: Environment, name: str, node: Any) -> AggregateCall:
    """json_agg(DISTINCT value): it is the values that are distinct and in order, so these are gathered first."""
    if name in ("json_agg", "jsonb_agg") and len(node.args or ()) == 1:
        call = _over_arguments(env, "array_agg", node)
        kind = call.arguments[0].type
        if kind.name == "jsonb" or _is_written_alike(kind):
            return call
    raise unsupported(f"{name}(DISTINCT ...)", "Use a SELECT DISTINCT in FROM.", env.binding.position(node))


def _is_written_alike(kind: SqlType) -> bool:
    """Whether equal values of a type are the same document, or of intervals that of any of them."""
    if kind.element is not None:
        return _is_written_alike(kind.element)
    if kind.row is not None:
        return all(_is_written_alike(each) for _, each in kind.row.fields)
    return kind.name not in ("json", "jsonb") and not kind.is_loose


def _argument(env: Environment, scalar: Scalar, target: str, node: Any) -> Scalar:
    if target in ("any", "anynonarray", "anyarray", *ANY_SPAN):
        kind = TEXT if scalar.type.name == "unknown" else scalar.type
    elif target == "text" and scalar.type.name == "varchar":
        kind = scalar.type
    else:
        kind = target_type(target, scalar.type)
    found = coerce(env.binding, scalar, kind, "implicit", node)
    assert found is not None, "the overload was chosen so that its arguments coerce"
    return found


def _result(chosen: Overload, arguments: tuple[Scalar, ...]) -> SqlType:
    kind = arguments[0].type
    match chosen.name:
        case "count":
            return INT8
        case "array_agg":
            return array(kind)
        case "min" | "max":
            kept = kind.name in ("numeric", "bpchar") or kind.element is not None
            return TEXT if kind.name == "varchar" else kind if kept else plain(kind)
        case "sum":
            return _sum(kind)
        case "avg":
            return INTERVAL if kind.name == "interval" else _average(kind)
        case "bool_and" | "bool_or":
            return BOOL
        case "range_agg":
            return multirange_of(kind) if kind.name in RANGES else kind
        case "bit_and" | "bit_or" | "bit_xor" | "range_intersect_agg":
            return kind
        case name if name in REGRESSIONS:
            return FLOAT8
        case "string_agg":
            return by_name(chosen.result)
        case _:
            return FLOAT8 if kind.name in ("float4", "float8") else SqlType("numeric", SPREAD)


def _sum(kind: SqlType) -> SqlType:
    match kind.name:
        case "int2" | "int4":
            return INT8
        case "int8":
            return numeric(38, 0)
        case "numeric":
            return numeric(38, kind.scale)
        case _:
            return by_name(kind.name)


def _average(kind: SqlType) -> SqlType:
    return FLOAT8 if kind.name in ("float4", "float8") else SqlType("numeric", QUOTIENT)


def bind_filter(env: Environment, node: Any) -> Scalar | None:
    """The condition of FILTER, if there is one."""
    if node.agg_filter is None:
        return None
    scalar = env.bind(node.agg_filter)
    found = coerce(env.binding, scalar, BOOL, "implicit", node.agg_filter)
    if found is None:
        message = f"argument of FILTER must be type boolean, not type {display(scalar.type)}"
        raise env.error("42804", message, node.agg_filter)
    return found


def _order(
    env: Environment, node: Any, arguments: tuple[Scalar, ...], given: Sequence[Scalar] = ()
) -> tuple[SortKey, ...]:
    """ORDER BY of an aggregate. With DISTINCT it names arguments, as they are ``given`` or as the aggregate takes them,
    and orders by the latter: ``string_agg(DISTINCT c, ',' ORDER BY c)`` of a char by its text."""
    keys = []
    for item in node.agg_order or ():
        scalar = env.bind(item.node)
        if scalar.type.name == "unknown":
            scalar = coerce(env.binding, scalar, TEXT, "implicit", item.node) or scalar
        if node.agg_distinct and scalar not in arguments:
            taken = next((taken for one, taken in zip(given, arguments, strict=False) if one == scalar), None)
            if taken is not None:
                keys.append(SortKey(taken, *direction(env.binding, item, taken.type)))
                continue
            message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
            raise env.error("42P10", message, item.node)
        keys.append(SortKey(scalar, *direction(env.binding, item, scalar.type)))
    return tuple(keys)
