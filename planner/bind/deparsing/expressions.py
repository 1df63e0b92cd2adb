"""Analysis of expressions (parse_expr.c, parse_oper.c).

Owns: one function per kind of parse node, found by the node's class. Calls and subqueries have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import (
    A_Expr_Kind,
    BoolExprType,
    BoolTestType,
    MinMaxOp,
    NullTestType,
    SortByDir,
    SortByNulls,
    SubLinkType,
)
from pglast.enums import SQLValueFunctionOp as ValueOp

from catalog.values.identifiers import quote_name
from catalog.values.types import by_name
from planner.bind.conversion.resolution import (
    BOOL,
    RECORD,
    UNKNOWN,
    array_of,
    category,
    common,
    element_of,
    operator,
    polymorphic_types,
    result_type,
)
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Place
from planner.bind.deparsing.coercion import (
    ANYTHING,
    INTEGER,
    agreed,
    as_text,
    cast,
    coerce,
    constant,
    in_array,
)
from planner.bind.deparsing.trees import (
    Array,
    Case,
    Collate,
    Const,
    Listed,
    Logic,
    Node,
    Operation,
    Quantified,
    RowCompare,
    SessionValue,
    SortItem,
    SubLink,
    Subscript,
    Test,
    variables,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import type_or_domain
from planner.bind.scalars.constants import number

_BIT: Final = 1560
_BOOLEAN_TESTS: Final = {
    BoolTestType.IS_TRUE: "IS TRUE",
    BoolTestType.IS_NOT_TRUE: "IS NOT TRUE",
    BoolTestType.IS_FALSE: "IS FALSE",
    BoolTestType.IS_NOT_FALSE: "IS NOT FALSE",
    BoolTestType.IS_UNKNOWN: "IS UNKNOWN",
    BoolTestType.IS_NOT_UNKNOWN: "IS NOT UNKNOWN",
}
_BETWEEN: Final = {
    A_Expr_Kind.AEXPR_BETWEEN: (">=", "<=", "AND", "OR"),
    A_Expr_Kind.AEXPR_NOT_BETWEEN: ("<", ">", "OR", "AND"),
    A_Expr_Kind.AEXPR_BETWEEN_SYM: (">=", "<=", "AND", "OR"),
    A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM: ("<", ">", "OR", "AND"),
}
_SYMMETRIC: Final = (A_Expr_Kind.AEXPR_BETWEEN_SYM, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM)
_AS_OPERATOR: Final = (
    A_Expr_Kind.AEXPR_OP,
    A_Expr_Kind.AEXPR_LIKE,
    A_Expr_Kind.AEXPR_ILIKE,
    A_Expr_Kind.AEXPR_SIMILAR,
)
_ORDERED: Final = ("<", "<=", ">", ">=")


def analyse(place: Place, node: Any) -> Node:
    """Analyses an expression and its parts."""
    handler = _HANDLERS.get(type(node).__name__)
    if handler is None:
        raise AsWrittenError
    return handler(place, node)


def condition(place: Place, node: Any) -> Node:
    """Analyses an expression that must be boolean."""
    return coerce(place, analyse(place, node), BOOL)


def sorted_by(item: Any, node: Node, place: int = 0) -> SortItem:
    """An ORDER BY item over its analysed expression."""
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_dir == SortByDir.SORTBY_USING:
        raise AsWrittenError
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return SortItem(node, descending, descending, place)
    return SortItem(node, descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST, place)


# --- constants and casts ---------------------------------------------------------------------------------------------


def _literal(place: Place, node: Any) -> Node:
    if node.isnull:
        return Const(None, UNKNOWN)
    value = node.val
    match type(value).__name__:
        case "Integer":
            return Const(str(value.ival or 0), INTEGER)
        case "Float":
            found = number(value.fval)
            return constant(place, str(found.value), found.type.oid)
        case "Boolean":
            return Const("t" if value.boolval else "f", BOOL)
        case "String":
            return Const(value.sval, UNKNOWN)
        case "BitString" if value.bsval.startswith("b"):
            return Const(value.bsval[1:], _BIT)
    raise AsWrittenError


def _cast(place: Place, node: Any) -> Node:
    kind, domain = type_or_domain(place.binding, node.typeName)
    inner = kind.element
    if inner is not None and type(node.arg).__name__ == "A_ArrayExpr":
        if domain or inner.typmod >= 0:
            raise AsWrittenError
        return _array(place, node.arg, inner.oid)
    return cast(place, analyse(place, node.arg), kind, domain)


# --- operators -------------------------------------------------------------------------------------------------------


def operate(place: Place, name: str, left: Node | None, right: Node, shown: str | None = None) -> Operation:
    """An operator over operands; ``shown`` replaces the operator in the text (make_op)."""
    operands = [item for item in (left, right) if item is not None]
    found = operator(name, 0 if left is None else place.base(left.oid), place.base(right.oid))
    if found is None:
        raise AsWrittenError
    targets = [oid for oid in (found.left, found.right) if oid]
    sources = place.bases(operands)
    kinds = (polymorphic_types(sources, targets) or {}) if ANYTHING.intersection(targets) else {}
    given = [coerce(place, item, kinds.get(oid, oid)) for item, oid in zip(operands, targets, strict=True)]
    result = result_type(found.result, place.bases(given), targets)
    if result is None or any(item.oid == UNKNOWN for item in given):
        raise AsWrittenError
    return Operation(shown or name, tuple(given), result)


def _expression(place: Place, node: Any) -> Node:
    """A_Expr: operators, and the constructs that the grammar reduces to operators."""
    kind, name = node.kind, names_of(node.name)[-1]
    if len(node.name) != 1:
        raise AsWrittenError
    if kind in _BETWEEN:
        return _between(place, node)
    if kind == A_Expr_Kind.AEXPR_IN:
        return _membership(place, name, node)
    if _is_row(node.lexpr) and _is_row(node.rexpr) and kind == A_Expr_Kind.AEXPR_OP:
        return _compared_rows(place, name, node)
    if _is_row(node.lexpr) or _is_row(node.rexpr):
        raise AsWrittenError
    left = None if node.lexpr is None else analyse(place, node.lexpr)
    right = analyse(place, node.rexpr)
    if kind in _AS_OPERATOR:
        return operate(place, name, left, right)
    assert left is not None
    match kind:
        case A_Expr_Kind.AEXPR_DISTINCT | A_Expr_Kind.AEXPR_NOT_DISTINCT:
            words = "IS DISTINCT FROM"
            for one, other in ((left, right), (right, left)):
                if isinstance(other, Const) and other.text is None:  # transformAExprDistinct
                    is_not = kind == A_Expr_Kind.AEXPR_DISTINCT
                    return Test(as_text(one), "IS NOT NULL" if is_not else "IS NULL")
            found = operate(place, "=", left, right, words)
            return found if kind == A_Expr_Kind.AEXPR_DISTINCT else Logic("NOT", (found,))
        case A_Expr_Kind.AEXPR_OP_ANY | A_Expr_Kind.AEXPR_OP_ALL:
            return quantify(place, name, kind == A_Expr_Kind.AEXPR_OP_ANY, left, right)
        case A_Expr_Kind.AEXPR_NULLIF:
            equal = operate(place, "=", left, right)
            return Listed("NULLIF", equal.arguments, equal.arguments[0].oid)
    raise AsWrittenError


def _is_row(node: Any) -> bool:
    return type(node).__name__ == "RowExpr"


def _between(place: Place, node: Any) -> Node:
    low, high, word, other = _BETWEEN[node.kind]
    first, second = node.rexpr

    def within(start: Any, end: Any) -> Node:
        lower = operate(place, low, analyse(place, node.lexpr), analyse(place, start))
        upper = operate(place, high, analyse(place, node.lexpr), analyse(place, end))
        return Logic(word, (lower, upper))  # type: ignore[arg-type]

    if node.kind in _SYMMETRIC:
        return Logic(other, (within(first, second), within(second, first)))  # type: ignore[arg-type]
    return within(first, second)


def _membership(place: Place, name: str, node: Any) -> Node:
    """IN and NOT IN: = ANY or <> ALL of an array, and comparisons for items with columns (transformAExprIn)."""
    if _is_row(node.lexpr):
        raise AsWrittenError
    left, items = analyse(place, node.lexpr), [analyse(place, item) for item in node.rexpr]
    own = set(map(id, place.sources))
    is_variable = [any(id(item.source) in own for item in variables(member)) for member in items]
    fixed = [item for item, varies in zip(items, is_variable, strict=True) if not varies]
    parts: list[Node] = []
    element = common(place.bases([left, *fixed])) if len(fixed) > 1 else None
    if element is not None and element != RECORD and array_of(element):
        parts.append(quantify(place, name, name == "=", left, in_array(place, fixed, element)))
        items = [item for item, varies in zip(items, is_variable, strict=True) if varies]
    parts += [operate(place, name, left, item) for item in items]
    found = parts[0]
    for part in parts[1:]:
        found = Logic("OR" if name == "=" else "AND", (found, part))
    return found


def quantify(place: Place, name: str, is_any: bool, left: Node, array: Node) -> Node:
    """A comparison with an array's elements (make_scalar_array_op)."""
    if isinstance(array, Const) and array.oid == UNKNOWN:
        array = constant(place, array.text, array_of(place.base(left.oid)))
    element = element_of(array.oid)
    found = operator(name, place.base(left.oid), element) if element else None
    if found is None:
        raise AsWrittenError
    value = coerce(place, left, element if found.left in ANYTHING and left.oid == UNKNOWN else found.left)
    if value.oid == UNKNOWN:
        raise AsWrittenError
    right = array if found.right in ANYTHING else coerce(place, array, array_of(found.right))
    return Quantified(name, "ANY" if is_any else "ALL", value, right)


def _compared_rows(place: Place, name: str, node: Any) -> Node:
    """Row comparison: one comparison per pair of fields for = and <>, else one of the whole rows
    (make_row_comparison_op)."""
    left, right = (tuple(analyse(place, item) for item in side.args) for side in (node.lexpr, node.rexpr))
    pairs = tuple(operate(place, name, one, other) for one, other in zip(left, right, strict=True))
    if len(pairs) == 1:
        return pairs[0]
    if name in ("=", "<>"):
        return Logic("AND" if name == "=" else "OR", pairs)
    if name not in _ORDERED:
        raise AsWrittenError
    return RowCompare(name, tuple(item.arguments[0] for item in pairs), tuple(item.arguments[1] for item in pairs))


def _logic(place: Place, node: Any) -> Node:
    parts = tuple(condition(place, item) for item in node.args)
    match node.boolop:
        case BoolExprType.NOT_EXPR:
            return Logic("NOT", parts)
        case BoolExprType.AND_EXPR:
            return Logic("AND", parts)
    return Logic("OR", parts)


def _null_test(place: Place, node: Any) -> Node:
    found = analyse(place, node.arg)
    if found.oid == RECORD or category(place.base(found.oid)) == "C":
        raise AsWrittenError
    return Test(found, "IS NULL" if node.nulltesttype == NullTestType.IS_NULL else "IS NOT NULL")


def _boolean_test(place: Place, node: Any) -> Node:
    return Test(condition(place, node.arg), _BOOLEAN_TESTS[node.booltesttype])


# --- the rest --------------------------------------------------------------------------------------------------------


def _column(place: Place, node: Any) -> Node:
    if any(type(item).__name__ != "String" for item in node.fields) or len(node.fields) > 3:
        raise AsWrittenError
    return place.column(names_of(node.fields))


def _session_value(place: Place, node: Any) -> Node:
    word = ValueOp(node.op).name.removeprefix("SVFOP_")
    name = _SESSION.get(word.removesuffix("_N"))
    if name is None:
        raise AsWrittenError
    digits = f"({node.typmod})" if word.endswith("_N") else ""
    return SessionValue(word.removesuffix("_N") + digits, by_name(name).oid)


_SESSION: Final = {
    "CURRENT_DATE": "date",
    "CURRENT_TIME": "timetz",
    "CURRENT_TIMESTAMP": "timestamptz",
    "LOCALTIME": "time",
    "LOCALTIMESTAMP": "timestamp",
    **dict.fromkeys(("CURRENT_ROLE", "CURRENT_USER", "USER", "SESSION_USER"), "name"),
    **dict.fromkeys(("CURRENT_CATALOG", "CURRENT_SCHEMA"), "name"),
}


def _agreed(place: Place, word: str, nodes: Sequence[Any]) -> Node:
    found = [analyse(place, item) for item in nodes]
    oid = agreed(place, found)
    return Listed(word, tuple(coerce(place, item, oid) for item in found), oid)


def _coalesce(place: Place, node: Any) -> Node:
    return _agreed(place, "COALESCE", node.args)


def _extreme(place: Place, node: Any) -> Node:
    return _agreed(place, "GREATEST" if node.op == MinMaxOp.IS_GREATEST else "LEAST", node.args)


def _array(place: Place, node: Any, element: int | None = None) -> Node:
    found = [analyse(place, item) for item in node.elements or ()]
    if any(category(place.base(item.oid)) == "A" for item in found) or (element is None and not found):
        raise AsWrittenError
    if element is None:
        return in_array(place, found, agreed(place, found))
    return Array(tuple(coerce(place, item, element, implicit=False) for item in found), array_of(element))


def _case(place: Place, node: Any) -> Node:
    argument = None if node.arg is None else as_text(analyse(place, node.arg))
    conditions = [
        condition(place, item.expr) if argument is None else operate(place, "=", argument, analyse(place, item.expr))
        for item in node.args
    ]
    results = [analyse(place, item.result) for item in node.args]
    last = Const(None, UNKNOWN) if node.defresult is None else analyse(place, node.defresult)
    oid = agreed(place, [last, *results])
    branches = zip(conditions, (coerce(place, item, oid) for item in results), strict=True)
    return Case(argument, tuple(branches), coerce(place, last, oid), oid)


def _collated(place: Place, node: Any) -> Node:
    found = analyse(place, node.arg)
    if found.oid == UNKNOWN:
        raise AsWrittenError
    return Collate(found, quote_name(names_of(node.collname)[-1]), found.oid)


def _selected(place: Place, node: Any) -> Node:
    """Subscripts: elements and slices of an array."""
    found = analyse(place, node.arg)
    element = element_of(place.base(found.oid))
    if not element or any(type(item).__name__ != "A_Indices" for item in node.indirection):
        raise AsWrittenError

    def index(item: Any) -> Node | None:
        return None if item is None else coerce(place, analyse(place, item), INTEGER)

    is_slice = any(item.is_slice for item in node.indirection)
    if is_slice and not all(item.is_slice for item in node.indirection):
        raise AsWrittenError
    indices = tuple(
        (index(item.lidx), index(item.uidx)) if item.is_slice else (index(item.uidx),) for item in node.indirection
    )
    return Subscript(found, indices, place.base(found.oid) if is_slice else element)


def _row(place: Place, node: Any) -> Node:
    items = [analyse(place, item) for item in node.args or ()]
    return Listed("ROW", tuple(as_text(item) for item in items), RECORD)


def _grouping(place: Place, node: Any) -> Node:
    return Listed("GROUPING", tuple(analyse(place, item) for item in node.args), INTEGER)


def _sublink(place: Place, node: Any) -> Node:
    """Subqueries as values (transformSubLink)."""
    query = place.analysis.query(place.inside(), node.subselect)
    kinds = [item.node.oid for item in query.targets]
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            return SubLink("exists", query, BOOL)
        case SubLinkType.EXPR_SUBLINK if len(kinds) == 1:
            return SubLink("value", query, kinds[0])
        case SubLinkType.ARRAY_SUBLINK if len(kinds) == 1:
            return SubLink("array", query, array_of(kinds[0]))
        case SubLinkType.ANY_SUBLINK | SubLinkType.ALL_SUBLINK:
            return _tested(place, node, SubLink("tests", query, BOOL), kinds)
    raise AsWrittenError


def _tested(place: Place, node: Any, found: SubLink, kinds: Sequence[int]) -> Node:
    """IN, ANY and ALL over a subquery."""
    name = names_of(node.operName)[-1] if node.operName else "="
    nodes = node.testexpr.args if _is_row(node.testexpr) else (node.testexpr,)
    if len(nodes) != len(kinds) or (len(nodes) > 1 and name not in ("=", "<>")):
        raise AsWrittenError
    # Casts of the subquery's columns have no text here; PostgreSQL does not show them either.
    tests = [
        operate(place, name, analyse(place, item), SubLink("value", found.query, kind)).arguments[0]
        for item, kind in zip(nodes, kinds, strict=True)
    ]
    is_any = node.subLinkType == SubLinkType.ANY_SUBLINK
    words = "IN" if is_any and name == "=" else f"{name} {'ANY' if is_any else 'ALL'}"
    return replace(found, tests=tuple(tests), words=words)


def _call(place: Place, node: Any) -> Node:
    return place.analysis.call(place, node)


_HANDLERS: Final[dict[str, Callable[[Place, Any], Node]]] = {
    "A_Const": _literal,
    "TypeCast": _cast,
    "A_Expr": _expression,
    "BoolExpr": _logic,
    "NullTest": _null_test,
    "BooleanTest": _boolean_test,
    "FuncCall": _call,
    "SQLValueFunction": _session_value,
    "CoalesceExpr": _coalesce,
    "MinMaxExpr": _extreme,
    "A_ArrayExpr": _array,
    "CaseExpr": _case,
    "CollateClause": _collated,
    "ColumnRef": _column,
    "A_Indirection": _selected,
    "RowExpr": _row,
    "GroupingFunc": _grouping,
    "SubLink": _sublink,
}
