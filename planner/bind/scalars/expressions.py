"""Expressions of the grammar become typed scalars.

Owns: ``bind_scalar``, and one function per kind of parse node, found by the node's class. Functions, aggregates,
operators and subqueries have files of their own. A chain of left-associative operators is bound by a loop, so that long
sums need no deep stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pglast.enums import A_Expr_Kind, BoolExprType, BoolTestType, MinMaxOp, NullTestType, SQLValueFunctionOp

from catalog.values.array_shapes import is_shaped
from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import KEYED, check_sorted, refuse_order
from catalog.values.types import (
    BOOL,
    DATE,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    SqlType,
    by_name,
    shaped,
)
from planner.algebra.nodes import Call, Case, Cast, ColumnRef, Literal, Parameter, Scalar
from planner.bind.calls.aggregation.aggregates import bind_grouping
from planner.bind.calls.families.arrays import bind_array, bind_array_cast, bind_quantified
from planner.bind.calls.functions import bind_function
from planner.bind.calls.operator_calls.operation import any_of, compare, operand_types, operate, prefix
from planner.bind.calls.overloading.polymorphic import POLYMORPHIC
from planner.bind.calls.system.catalog_calls import bind_field
from planner.bind.conversion.coercion import as_expressed, coerce, common_kind, numeric_of, text_if_unknown
from planner.bind.conversion.domains import has_domains, into_domain, into_type
from planner.bind.conversion.rows import bind_row, is_row, is_star, whole_row
from planner.bind.lookup.columns import plain_column, resolve
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import check_collation, display, shown_domain, type_or_domain, with_digits
from planner.bind.scalars.constants import bind_constant
from planner.bind.scalars.field_selection import bind_selection
from planner.bind.scalars.predicates import again, bind_between, bind_like, bind_pattern, is_volatile, negate
from planner.bind.scalars.row_comparisons import compare_rows, null_test, rows_distinct, rows_in_list
from planner.bind.scalars.subqueries import bind_sublink
from planner.bind.state.environment import Environment
from planner.bind.state.row_versions import refuse_number

#: Operators in one chain: what later recursive passes over the tree can take.
_CHAIN: Final = 5000


def bind_scalar(env: Environment, node: Any) -> Scalar:
    """The scalar that an expression means. Strings, NULL and parameters may come back of type unknown."""
    handler = _HANDLERS.get(type(node).__name__)
    if handler is None:
        raise unsupported(type(node).__name__, position=env.binding.position(node))
    return handler(env, node)


def bind_typed(env: Environment, node: Any) -> Scalar:
    """The scalar that an expression means, with unknown resolved to text, as in a select list."""
    scalar = bind_scalar(env, node)
    return text_if_unknown(env, scalar, node)


def bind_boolean(env: Environment, node: Any, what: str) -> Scalar:
    """A condition. Raises 42804 naming ``what`` it is the argument of."""
    scalar = bind_scalar(env, node)
    found = coerce(env.binding, scalar, BOOL, "implicit", node)
    if found is None:
        raise env.error_at("42804", f"argument of {what} must be type boolean, not type {display(scalar.type)}", node)
    return found


# --- leaves ----------------------------------------------------------------------------------------------------------


def _column(env: Environment, node: Any) -> Scalar:
    entry = plain_column(env.scope, node)
    if entry is None:
        if len(node.fields) <= 2 and (row := whole_row(env, node)) is not None:
            return row
        if is_star(node):
            raise unsupported("* as a value", "Name the columns.", env.binding.position(node))
        entry = resolve(env.binding, env.scope, names_of(node.fields), node)
    if isinstance(entry.scalar, ColumnRef):
        scalar = ColumnRef(entry.scalar.column)
        env.binding.remember(scalar, node)
        return scalar
    return entry.scalar


def _parameter(env: Environment, node: Any) -> Scalar:
    if env.binding.bodies:
        if not 0 < node.number <= len(env.binding.bodies[-1]):
            raise env.error("42P02", f"there is no parameter ${node.number}", node)
        given: Scalar = env.binding.bodies[-1][node.number - 1]
        return given
    if node.number < 1 or node.number > 65535:
        raise env.error("42P02", f"there is no parameter ${node.number}", node)
    parameter = Parameter(node.number - 1, env.binding.parameter(node.number - 1) or UNKNOWN)
    return into_type(env.binding, parameter, node) if has_domains(parameter.type) else parameter


# --- operators -------------------------------------------------------------------------------------------------------


def _operation(env: Environment, node: Any) -> Scalar:
    """A_Expr: a left spine of plain operators is folded in a loop."""
    spine = []
    current = node
    while _has_left(current) and not is_row(current.lexpr):
        spine.append(current)
        current = current.lexpr
    if not spine:
        return _special_operation(env, node)
    if len(spine) > _CHAIN:
        raise SqlError("54001", "stack depth limit exceeded", hint=f"Chain at most {_CHAIN} operators.")
    scalar = bind_scalar(env, current)
    for item in reversed(spine):
        right = bind_scalar(env, item.rexpr)
        scalar = operate(env, names_of(item.name)[-1], scalar, right, item, (item.lexpr, item.rexpr))
    return scalar


def _has_left(node: Any) -> bool:
    return type(node).__name__ == "A_Expr" and node.kind == A_Expr_Kind.AEXPR_OP and node.lexpr is not None


def _special_operation(env: Environment, node: Any) -> Scalar:
    if is_row(node.lexpr) and node.kind in _OF_ROWS:
        return _OF_ROWS[node.kind](env, node)
    match node.kind:
        case A_Expr_Kind.AEXPR_OP:
            return prefix(env, names_of(node.name)[-1], bind_scalar(env, node.rexpr), node, node.rexpr)
        case A_Expr_Kind.AEXPR_IN:
            found = any_of(env, bind_scalar(env, node.lexpr), [bind_scalar(env, item) for item in node.rexpr], node)
            return negate(found) if names_of(node.name)[-1] == "<>" else found
        case A_Expr_Kind.AEXPR_OP_ANY | A_Expr_Kind.AEXPR_OP_ALL:
            return bind_quantified(env, node)
        case A_Expr_Kind.AEXPR_DISTINCT | A_Expr_Kind.AEXPR_NOT_DISTINCT:
            name = "is_distinct" if node.kind == A_Expr_Kind.AEXPR_DISTINCT else "is_not_distinct"
            left, right = compare(env, "=", bind_scalar(env, node.lexpr), bind_scalar(env, node.rexpr), node)
            return Call(name, (left, right), BOOL)
        case A_Expr_Kind.AEXPR_NULLIF:
            return _nullif(env, bind_scalar(env, node.lexpr), bind_scalar(env, node.rexpr), node)
        case A_Expr_Kind.AEXPR_LIKE | A_Expr_Kind.AEXPR_ILIKE | A_Expr_Kind.AEXPR_SIMILAR:
            return bind_like(env, node)
        case _:
            return bind_between(env, node)


def _nullif(env: Environment, first: Scalar, second: Scalar, node: Any) -> Scalar:
    """NULLIF is of the type that = takes on its left, though both sides are compared as the wider one."""
    own = operand_types(env, "=", first, second, node)[0]
    left, right = compare(env, "=", first, second, node)
    call = Call("nullif", (left, right), left.type)
    if own == "text" and left.type.name == "varchar":
        return Cast(call, TEXT)
    if own in (left.type.name, *POLYMORPHIC):
        return call
    if left.type.name == "timestamptz":  # the way back is not unique where clocks are set back
        raise unsupported("NULLIF of a time with and one without a zone", "Cast one.", env.binding.position(node))
    return Cast(call, by_name(own))


def _rows_in(env: Environment, node: Any) -> Scalar:
    found = rows_in_list(env, node)
    return negate(found) if names_of(node.name)[-1] == "<>" else found


_OF_ROWS: Final[dict[Any, Callable[[Environment, Any], Scalar]]] = {
    A_Expr_Kind.AEXPR_OP: compare_rows,
    A_Expr_Kind.AEXPR_IN: _rows_in,
    A_Expr_Kind.AEXPR_DISTINCT: rows_distinct,
    A_Expr_Kind.AEXPR_NOT_DISTINCT: lambda env, node: negate(rows_distinct(env, node)),
}


def _boolean(env: Environment, node: Any) -> Scalar:
    word = {BoolExprType.AND_EXPR: "AND", BoolExprType.OR_EXPR: "OR", BoolExprType.NOT_EXPR: "NOT"}[node.boolop]
    arguments = tuple(bind_boolean(env, item, word) for item in node.args)
    return Call(word.lower(), arguments, BOOL)


def _null_test(env: Environment, node: Any) -> Scalar:
    name = "is_null" if node.nulltesttype == NullTestType.IS_NULL else "is_not_null"
    if type(node.arg).__name__ == "ParamRef":
        scalar = _parameter(env, node.arg)
        if isinstance(scalar, Parameter) and scalar.type.name == "unknown":
            env.binding.leave_open(scalar.index, node.arg)
            return Call(name, (scalar,), BOOL)
    return null_test(env, node, name)


_TESTS: Final = {
    BoolTestType.IS_TRUE: ("is_true", "IS TRUE"),
    BoolTestType.IS_NOT_TRUE: ("is_not_true", "IS NOT TRUE"),
    BoolTestType.IS_FALSE: ("is_false", "IS FALSE"),
    BoolTestType.IS_NOT_FALSE: ("is_not_false", "IS NOT FALSE"),
    BoolTestType.IS_UNKNOWN: ("is_null", "IS UNKNOWN"),
    BoolTestType.IS_NOT_UNKNOWN: ("is_not_null", "IS NOT UNKNOWN"),
}


def _boolean_test(env: Environment, node: Any) -> Scalar:
    name, words = _TESTS[node.booltesttype]
    return Call(name, (bind_boolean(env, node.arg, words),), BOOL)


# --- conditionals and casts ------------------------------------------------------------------------------------------


def unify(env: Environment, scalars: list[Scalar], what: str, nodes: list[Any]) -> list[Scalar]:
    """Scalars coerced to their common type. Raises 42804 and 42846."""
    kind = common_kind(scalars, what, lambda index: env.binding.start(nodes[index]))
    kinds = {item.type for item in scalars if not (isinstance(item, Literal) and item.value is None)}
    if kind.name == "bpchar" and len(kinds) == 1:  # a char(n) beside NULL still shows its blanks
        kind = kinds.pop()
    found = []
    for scalar, node in zip(scalars, nodes, strict=True):
        coerced = coerce(env.binding, scalar, kind, "implicit", node)
        assert coerced is not None, "common_kind chose a type that all of them coerce to"
        found.append(coerced)
    return found


def _case(env: Environment, node: Any) -> Scalar:
    env = env.without_sets("CASE")
    subject = bind_typed(env, node.arg) if node.arg is not None else None
    if subject is not None and is_volatile(subject):
        raise unsupported("CASE of a volatile function", "Compute it in a subquery.", env.binding.position(node.arg))
    conditions: list[Scalar] = []
    for when in node.args:
        if subject is None:
            conditions.append(bind_boolean(env, when.expr, "CASE/WHEN"))
        else:
            first = again(env, subject, node.arg)
            conditions.append(operate(env, "=", first, bind_scalar(env, when.expr), when, (node.arg, when.expr)))
    # PostgreSQL lets ELSE come first when it looks for the common type.
    nodes = [node.defresult, *(when.result for when in node.args)]
    scalars = [Literal(None, UNKNOWN) if item is None else bind_scalar(env, item) for item in nodes]
    otherwise, *results = unify(env, scalars, "CASE", nodes)
    return Case(tuple(zip(conditions, results, strict=True)), otherwise, otherwise.type)


def _variadic(env: Environment, name: str, what: str, nodes: tuple[Any, ...]) -> Scalar:
    scalars = unify(env, [bind_scalar(env, item) for item in nodes], what, list(nodes))
    return Call(name, tuple(scalars), scalars[0].type)


def _coalesce(env: Environment, node: Any) -> Scalar:
    return _variadic(env.without_sets("COALESCE"), "coalesce", "COALESCE", node.args)


def _min_max(env: Environment, node: Any) -> Scalar:
    word = "GREATEST" if node.op == MinMaxOp.IS_GREATEST else "LEAST"
    found = _variadic(env, word.lower(), word, node.args)
    check_sorted(found.type, "a comparison function")
    refuse_order(found.type, word, lambda: env.binding.position(node))
    if found.type.name in KEYED:
        raise unsupported(f"{word} of values of type {found.type}", "Use CASE.", env.binding.position(node))
    return found


def _cast(env: Environment, node: Any) -> Scalar:
    return as_expressed(bind_array_cast(env, node) or _declared_cast(env, node))


def _declared_cast(env: Environment, node: Any) -> Scalar:
    target, domain = type_or_domain(env.binding, node.typeName)
    scalar = bind_scalar(env, node.arg)
    refuse_number(env.binding, scalar, target, node)
    target = _with_shape(target, scalar)
    if target == NUMERIC:
        target = numeric_of(scalar)
    place = node if scalar.type.row is not None and target.row is not None else node.arg
    found = coerce(env.binding, scalar, target, "explicit", place)
    if found is None:
        shown = display(target) if not domain else shown_domain(env.binding, domain)
        raise env.error("42846", f"cannot cast type {display(scalar.type)} to {shown}", node)
    if domain:
        return into_domain(env.binding, found, domain, node)
    if isinstance(found, ColumnRef):
        env.binding.remember(found, node.arg)
    return found


def _with_shape(target: SqlType, scalar: Scalar) -> SqlType:
    """An array type keeps the dimensions of what is cast to it, where that has any."""
    if target.name != "array" or target.element is None:
        return target
    says = isinstance(scalar, Literal) and scalar.type.category in "XS" and is_shaped(str(scalar.value))
    return shaped(target.element) if says or scalar.type.name == "shaped" else target


_SESSION: Final[dict[Any, tuple[str, SqlType, SqlType]]] = {
    SQLValueFunctionOp.SVFOP_CURRENT_DATE: ("current_date", DATE, DATE),
    SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP: ("now", TIMESTAMPTZ, TIMESTAMPTZ),
    SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP: ("now", TIMESTAMPTZ, TIMESTAMP),
    SQLValueFunctionOp.SVFOP_CURRENT_TIME: ("now", TIMESTAMPTZ, TIMETZ),
    SQLValueFunctionOp.SVFOP_LOCALTIME: ("now", TIMESTAMPTZ, TIME),
    SQLValueFunctionOp.SVFOP_CURRENT_ROLE: ("current_user", SqlType("name"), SqlType("name")),
    SQLValueFunctionOp.SVFOP_CURRENT_USER: ("current_user", SqlType("name"), SqlType("name")),
    SQLValueFunctionOp.SVFOP_USER: ("current_user", SqlType("name"), SqlType("name")),
    SQLValueFunctionOp.SVFOP_SESSION_USER: ("session_user", SqlType("name"), SqlType("name")),
    SQLValueFunctionOp.SVFOP_CURRENT_CATALOG: ("current_database", SqlType("name"), SqlType("name")),
    SQLValueFunctionOp.SVFOP_CURRENT_SCHEMA: ("current_schema", SqlType("name"), SqlType("name")),
}


#: Those with digits: CURRENT_TIMESTAMP(3).
_ROUNDED: Final = {
    SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP_N: SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP,
    SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP_N: SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP,
    SQLValueFunctionOp.SVFOP_CURRENT_TIME_N: SQLValueFunctionOp.SVFOP_CURRENT_TIME,
    SQLValueFunctionOp.SVFOP_LOCALTIME_N: SQLValueFunctionOp.SVFOP_LOCALTIME,
}


def _session_value(env: Environment, node: Any) -> Scalar:
    name, kind, wanted = _SESSION[_ROUNDED.get(node.op, node.op)]
    call = Call(name, (), kind)
    env.binding.remember(call, node)
    if node.op in _ROUNDED:
        return as_expressed(Cast(call, with_digits(wanted, node.typmod)))
    return call if kind == wanted else Cast(call, wanted)


def _refuse(construct: str, instead: str | None = None) -> Callable[[Environment, Any], Scalar]:
    def refuse(env: Environment, node: Any) -> Scalar:
        raise unsupported(construct, instead, env.binding.position(node))

    return refuse


def _default(env: Environment, node: Any) -> Scalar:
    raise env.error("42601", "DEFAULT is not allowed in this context", node)


def _collate(env: Environment, node: Any) -> Scalar:
    """COLLATE: all texts are ordered by their code points, which some collations say."""
    scalar = bind_scalar(env, node.arg)
    check_collation(env.binding, node, scalar.type)
    return scalar


_HANDLERS: Final[dict[str, Callable[[Environment, Any], Scalar]]] = {
    "A_Const": bind_constant,
    "ColumnRef": _column,
    "ParamRef": _parameter,
    "A_Expr": _operation,
    "BoolExpr": _boolean,
    "NullTest": _null_test,
    "BooleanTest": _boolean_test,
    "CaseExpr": _case,
    "CoalesceExpr": _coalesce,
    "MinMaxExpr": _min_max,
    "TypeCast": _cast,
    "FuncCall": lambda env, node: bind_pattern(env, node) or bind_function(env, node),
    "SubLink": bind_sublink,
    "SQLValueFunction": _session_value,
    "SetToDefault": _default,
    "A_ArrayExpr": bind_array,
    "A_Indirection": lambda env, node: bind_field(env, node) or bind_selection(env, node),
    "RowExpr": bind_row,
    "CollateClause": _collate,
    "GroupingFunc": bind_grouping,
    "XmlExpr": _refuse("XML"),
}
