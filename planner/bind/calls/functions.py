"""Function calls of the grammar become calls of canonical functions.

Owns: ``bind_function``, which finds the module for a function by its name, and ``call_by_name``, the calls of
``planner.algebra.functions`` by PostgreSQL's names and signatures, with the errors for the rest (42883, 0A000).
Aggregates are in ``planner.bind.calls.aggregation.aggregates``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import FLOAT8, MAX_PRECISION, NUMERIC, QUOTIENT, TEXT, SqlType, by_name, by_oid, numeric
from planner.algebra.functions import WINDOW_FUNCTIONS
from planner.algebra.nodes import Cast, Literal, Scalar
from planner.bind.calls import set_functions as sets
from planner.bind.calls.aggregation.aggregates import AGGREGATE_NAMES, bind_aggregate
from planner.bind.calls.aggregation.event_time_windows import EVENT_TIME, bind_event_time
from planner.bind.calls.aggregation.ordered_sets import ORDERED_SETS, bind_ordered_set
from planner.bind.calls.aggregation.window_calls import bind_window
from planner.bind.calls.families import arrays, enums, json_rows
from planner.bind.calls.families import json_functions as jsons
from planner.bind.calls.families.regex_functions import REGEX_FUNCTIONS
from planner.bind.calls.families.text_functions import TEXT_FUNCTIONS
from planner.bind.calls.families.time_functions import TIME_FUNCTIONS, make_interval
from planner.bind.calls.families.variadic import OF_ARRAYS, VARIADIC, of_array
from planner.bind.calls.operator_calls.operator_functions import bind_behind
from planner.bind.calls.operator_calls.ranges import of_ranges, range_of
from planner.bind.calls.overloading.call_forms import Special, bare_call, called, without_voids
from planner.bind.calls.overloading.choice import choose, no_function
from planner.bind.calls.overloading.deferred_calls import is_late, late
from planner.bind.calls.overloading.named_arguments import by_position, unlabelled
from planner.bind.calls.overloading.overloads import ANY, ANY_SPAN, Overload, chosen_function
from planner.bind.calls.overloading.polymorphic import POLYMORPHIC
from planner.bind.calls.overloading.signatures import OVERLOADS
from planner.bind.calls.system.catalog_calls import bind_body_call, bind_catalog_call, is_body_call
from planner.bind.calls.system.notify_calls import bind_notify_call, is_notify_call
from planner.bind.calls.system.sequence_calls import bind_sequence_call, bind_serial_sequence, is_sequence_call
from planner.bind.calls.system.suspension_calls import bind_leaving_call, is_leaving_call
from planner.bind.calls.user_functions import bind_user_call
from planner.bind.conversion.coercion import blank_padded, coerce, common_numeric, numeric_result, target_type
from planner.bind.conversion.resolution import TypeCall
from planner.bind.conversion.rows import declared_row, field_of
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment

#: Decimals that round and trunc show of a number of up to 38 digits, such as a sum of bigint, at the expense of its
#: first digits.
_SHOWN_DECIMALS: Final = 10


def bind_function(env: Environment, node: Any) -> Scalar:
    """A FuncCall: an aggregate, a function of the allow-list, or a cast written as a call."""
    names = names_of(node.funcname)
    name = names[-1]
    if not node.agg_within_group and node.over is None and (own := bind_user_call(env, node)) is not None:
        _check_plain(env, node, name)
        return own
    node = by_position(env, node)
    if node.agg_within_group:
        return bind_ordered_set(env, node)
    if name in ORDERED_SETS:
        raise env.error("42809", f"WITHIN GROUP is required for ordered-set aggregate {name}", node)
    if node.over is not None:
        return bind_window(env, node)
    if name in WINDOW_FUNCTIONS:
        raise env.error("42809", f"window function {name} requires an OVER clause", node)
    if is_leaving_call(names):
        _check_plain(env, node, name)
        return bind_leaving_call(env, name, node)
    if is_body_call(env, names):
        return bind_body_call(env, name, node)
    if len(names) > 1 and names[0] not in ("pg_catalog", "information_schema"):
        if names[-2] not in env.binding.context.catalog.schemas:
            raise env.error("3F000", f'schema "{names[-2]}" does not exist', node)
        raise no_function(env, [env.bind(item) for item in unlabelled(node.args or ())], node)
    if name in AGGREGATE_NAMES:
        return bind_aggregate(env, node)
    _check_plain(env, node, name)
    if is_sequence_call(name, len(node.args or ())):
        return bind_sequence_call(env, name, node)
    if is_notify_call(name, len(node.args or ())):
        return bind_notify_call(env, node)
    if name == "pg_get_serial_sequence" and all(type(item).__name__ == "A_Const" for item in node.args or ()):
        return bind_serial_sequence(env, node)
    if name in EVENT_TIME:
        return bind_event_time(env, node)
    if name == "make_interval":
        return make_interval(env, node)
    if json_rows.is_of_rows(node):
        return json_rows.bind_row_call(env, node)
    if sets.is_set(node):
        return sets.bind_in_expression(env, node)
    if name in jsons.FUNCTIONS:
        return jsons.bind_json_function(env, node)
    if name in enums.FUNCTIONS:
        return enums.bind_enum_function(env, node)
    if arrays.is_array_function(name, len(node.args or ())):
        return arrays.bind_array_function(env, node)
    arguments = [env.bind(item) for item in node.args or ()]
    node, arguments = without_voids(node, arguments)
    about_catalog = bind_catalog_call(env, name, arguments, node)
    if about_catalog is not None:
        return about_catalog
    try:
        return call_by_name(env, name, arguments, node)
    except SqlError as error:
        field = _field(names, arguments) if error.sqlstate == "42883" else None
        if field is None:
            raise
        return field


def _field(names: Sequence[str], arguments: Sequence[Scalar]) -> Scalar | None:
    """name(row), which is the row's field where there is no such function."""
    if len(names) != 1 or len(arguments) != 1 or arguments[0].type.row is None:
        return None
    known = [name for name, _ in declared_row(arguments[0]).fields]
    return field_of(arguments[0], known.index(names[0])) if names[0] in known else None


def _check_plain(env: Environment, node: Any, name: str) -> None:
    """DISTINCT, ORDER BY and FILTER belong to aggregates; what is no function at all, 42883 says."""
    for present, words in ((node.agg_distinct, "DISTINCT"), (node.agg_order, "ORDER BY"), (node.agg_filter, "FILTER")):
        if present:
            env.bind(bare_call(node))
            raise env.error("42809", f"{words} specified, but {name} is not an aggregate function", node)
    if node.func_variadic and name not in OF_ARRAYS and name not in jsons.OF_ARRAYS:
        raise unsupported("a VARIADIC argument", "Give its elements one by one.", env.binding.position(node))


def call_by_name(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """A call of a function of Millstream's own by its PostgreSQL name, over arguments that are bound already."""
    if node.func_variadic:
        return of_array(env, name, arguments, node)
    if name in VARIADIC:
        return VARIADIC[name](env, arguments, node)
    known = OVERLOADS.get(name, {})
    if (meant := bind_behind(env, name, arguments, node, known)) is not None:
        return meant
    chosen = choose(env, name, arguments, node, known)
    if (nothing := _nothing(name, arguments, chosen)) is not None:
        return nothing
    if isinstance(chosen, TypeCall):
        if arguments[0].type.row is not None:  # text(row) could be meant as a field's name
            raise no_function(env, arguments, node)
        found = coerce(env.binding, arguments[0], by_oid(chosen.target), "explicit", node.args[0])
        assert found is not None, "the call was chosen so that its argument coerces"
        return found
    if chosen.arguments and chosen.arguments[0] in ANY_SPAN:
        return of_ranges(env, chosen, arguments, node)
    if chosen.name == "range_make":
        return range_of(env, name, chosen, arguments, node)
    coerced = [
        _argument(env, item, target, place)
        for item, target, place in zip(arguments, chosen.arguments, node.args or (), strict=True)
    ]
    if is_late(name, coerced):
        return late(name, coerced, FLOAT8 if name == "date_part" else by_name(chosen.result))
    if chosen.name in _SPECIAL:
        return _SPECIAL[chosen.name](env, name, coerced, node)
    if chosen.name == "mod":
        coerced = [Cast(item, by_name(chosen.result)) if item.type.name != chosen.result else item for item in coerced]
    if chosen.name == "octet_length":
        coerced = [blank_padded(item) for item in coerced]
    kind = _numeric_kind(env, chosen.name, coerced, node) if chosen.result == "numeric" else by_name(chosen.result)
    return called(env, chosen.name, coerced, kind, name, node)


def _nothing(name: str, arguments: list[Scalar], chosen: Overload | TypeCall) -> Scalar | None:
    """NULL for a strict function of a constant NULL, whatever the other arguments are (evaluate_function)."""
    if isinstance(chosen, TypeCall) or chosen.result in POLYMORPHIC:
        return None
    if not any(isinstance(item, Literal) and item.value is None for item in arguments):
        return None
    found = chosen_function(name, tuple(item.type.oid for item in arguments))
    assert isinstance(found, tuple), "the overload was chosen"
    return Literal(None, by_oid(found[0].result)) if found[0].strict else None


def _argument(env: Environment, scalar: Scalar, target: str, node: Any) -> Scalar:
    if target == "anyelement" or (target == "text" and scalar.type.name == "varchar"):
        return scalar
    kind = TEXT if target == ANY else target_type(target, scalar.type)
    found = coerce(env.binding, scalar, kind, "implicit", node)
    assert found is not None, "the overload was chosen so that its arguments coerce"
    return found


def _numeric_kind(env: Environment, name: str, arguments: list[Scalar], node: Any) -> SqlType:
    """Digits of a function's numeric result."""
    if name in ("factorial", "whole_quotient"):
        return numeric(38, 0)
    if name == "to_number":
        return NUMERIC
    precision, scale = arguments[0].type.precision, arguments[0].type.scale
    match name:
        case "round" | "trunc" if len(arguments) == 2:
            digits = arguments[1]
            assert isinstance(digits, Literal)
            kept = max(digits.value, 0) if isinstance(digits.value, int) else 0
            if kept >= scale:
                room = max(MAX_PRECISION - precision + scale, _SHOWN_DECIMALS)
                return numeric(precision - scale + kept, min(kept, room))
            return numeric(precision - scale + 1 + kept, kept)
        case "round" | "trunc" | "ceil" | "floor":
            return numeric(precision - scale + 1, 0)
        case "sign":
            return numeric(1, 0)
        case "abs":
            return arguments[0].type
        case "sqrt" | "exp" | "ln" | "log" | "power":
            return SqlType("numeric", QUOTIENT)
        case "gcd" | "lcm":
            kind = common_numeric([item.type for item in arguments])
            return numeric(38, kind.scale)
        case "trim_scale":
            return NUMERIC
        case "mod":
            return numeric_result("mod", arguments[0].type, arguments[1].type)
        case _:
            raise unsupported(f"{name}() of numeric", "Cast to double precision.", env.binding.position(node))


_SPECIAL: Final[dict[str, Special]] = {**TEXT_FUNCTIONS, **TIME_FUNCTIONS, **REGEX_FUNCTIONS}
