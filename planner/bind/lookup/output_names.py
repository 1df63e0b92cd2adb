"""The name of an output column that has none: PostgreSQL's FigureColname (parse_target.c)."""

from __future__ import annotations

from typing import Any, Final

from pglast.enums import A_Expr_Kind, MinMaxOp, SQLValueFunctionOp, SubLinkType

from planner.bind.lookup.dotted_names import names_of

ANONYMOUS: Final = "?column?"
_WEAK, _STRONG = 1, 2


def output_name(node: Any) -> str:
    """The name that PostgreSQL gives to an unnamed select item."""
    return _figure(node)[1]


def _figure(node: Any) -> tuple[int, str]:
    kind = type(node).__name__
    if kind in _CONSTANT:
        return _STRONG, _CONSTANT[kind]
    match kind:
        case "ColumnRef":
            names = [item.sval for item in node.fields if type(item).__name__ == "String"]
            return (_STRONG, names[-1]) if names else (0, ANONYMOUS)
        case "FuncCall":
            return _STRONG, names_of(node.funcname)[-1]
        case "A_Expr" if node.kind == A_Expr_Kind.AEXPR_NULLIF:
            return _STRONG, "nullif"
        case "TypeCast":
            return _or_weak(node.arg, names_of(node.typeName.names)[-1])
        case "A_Indirection" if type(node.indirection[-1]).__name__ == "String":
            return _STRONG, node.indirection[-1].sval
        case "CollateClause" | "A_Indirection":
            return _figure(node.arg)
        case "MinMaxExpr":
            return _STRONG, "greatest" if node.op == MinMaxOp.IS_GREATEST else "least"
        case "CaseExpr":
            return _or_weak(node.defresult, "case")
        case "SQLValueFunction":
            return _STRONG, SQLValueFunctionOp(node.op).name.removeprefix("SVFOP_").removesuffix("_N").lower()
        case "SubLink":
            return _sublink(node)
        case _:
            return 0, ANONYMOUS


_CONSTANT: Final = {"CoalesceExpr": "coalesce", "GroupingFunc": "grouping", "A_ArrayExpr": "array", "RowExpr": "row"}


def _or_weak(argument: Any, otherwise: str) -> tuple[int, str]:
    strength, name = _figure(argument)
    return (strength, name) if strength > _WEAK else (_WEAK, otherwise)


def _sublink(node: Any) -> tuple[int, str]:
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            return _STRONG, "exists"
        case SubLinkType.ARRAY_SUBLINK:
            return _STRONG, "array"
        case SubLinkType.EXPR_SUBLINK:
            query = node.subselect
            while query.larg is not None:
                query = query.larg
            if query.targetList:
                first = query.targetList[0]
                return _STRONG, first.name or _figure(first.val)[1]
            return _STRONG, "column1"
        case _:
            return 0, ANONYMOUS
