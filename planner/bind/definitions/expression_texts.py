"""How PostgreSQL writes the expressions that its catalogs keep: each constant and each cast with its type.

Owns: ``expression_text``, the text of a default, a check or a generated column as pg_get_expr() shows it (ruleutils.c):
operators in parentheses, constants with the type that they were read as, and what an operand is cast to where the cast
is not written. A text means what the expression means; users' types in it are named by oid, as in all kept texts::

    a IN ('x', 'y')   ->   ((a)::text = ANY ((ARRAY['x'::character varying, 'y'::character varying])::text[]))

What is not written so here (rows, subscripts) is shown as the user wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from pglast.enums import A_Expr_Kind, BoolExprType, BoolTestType, CoercionForm, MinMaxOp, NullTestType
from pglast.enums import SQLValueFunctionOp as ValueOp

from catalog.errors import SqlError
from catalog.names import quote_name
from catalog.postgres import type_row
from catalog.types import ARRAYS, SqlType, by_oid
from planner.bind.calls.resolution import (
    BOOL,
    RECORD,
    UNKNOWN,
    Ambiguous,
    Candidate,
    array_of,
    category,
    common,
    element_of,
    function_call,
    operator,
    result_type,
)
from planner.bind.context import Binding
from planner.bind.definitions.kept import kept_text
from planner.bind.texts import bind_tree
from planner.bind.typenames import BY_OID, names_of, type_of
from planner.expression import Column

_INTEGER: Final = 23
_NUMERIC: Final = 1700
_REGCLASS: Final = 2205
#: What ANY type of an argument is declared with.
_ANYTHING: Final = frozenset((2276, 2283, 2277, 2776, 3500, 5077, 5078, 5079))
#: Types whose names as format_type() prints them mean a length of 1.
_ANY_LENGTH: Final = {"bpchar": "bpchar", "bit": '"bit"'}
_TRUE: Final = frozenset(("t", "true", "y", "yes", "on", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "off", "0"))
_BOOLEAN_TESTS: Final = {
    BoolTestType.IS_TRUE: "TRUE",
    BoolTestType.IS_NOT_TRUE: "NOT TRUE",
    BoolTestType.IS_FALSE: "FALSE",
    BoolTestType.IS_NOT_FALSE: "NOT FALSE",
    BoolTestType.IS_UNKNOWN: "UNKNOWN",
    BoolTestType.IS_NOT_UNKNOWN: "NOT UNKNOWN",
}
_BETWEEN: Final = {
    A_Expr_Kind.AEXPR_BETWEEN: (">=", "<=", "AND"),
    A_Expr_Kind.AEXPR_NOT_BETWEEN: ("<", ">", "OR"),
}
_AS_OPERATOR: Final = (A_Expr_Kind.AEXPR_OP, A_Expr_Kind.AEXPR_LIKE, A_Expr_Kind.AEXPR_ILIKE)
_IN_PARENTHESES: Final = ("A_Expr", "BoolExpr", "NullTest", "BooleanTest")


class _AsWrittenError(Exception):
    """What this file has no text of."""


def expression_text(binding: Binding, tree: Any, columns: Sequence[Column], kind: SqlType | None = None) -> str:
    """An expression over a row's columns; ``kind``: what its value is assigned to."""
    try:
        return _Writer(binding, tuple(columns)).assigned(tree, kind)
    except (_AsWrittenError, SqlError, Ambiguous, KeyError, RecursionError):
        text = kept_text(binding, tree)
        return f"({text})" if type(tree).__name__ in _IN_PARENTHESES else text


class _Text(Struct, frozen=True):
    """A part's text and type. ``constant``: the value's own text, of a constant whose cast needs no parentheses."""

    text: str
    oid: int
    constant: str | None = None


class _Writer(Struct):
    """One expression on its way; ``indent``: spaces before the lines of a CASE."""

    binding: Binding
    columns: tuple[Column, ...]
    indent: int = 0

    def assigned(self, tree: Any, kind: SqlType | None) -> str:
        """The whole: a cast that an assignment brings is not written."""
        found = self.part(tree)
        if kind is None or found.oid != UNKNOWN:
            return found.text
        if kind.name == "interval" and kind.modifiers and found.constant is not None:  # it says what a number counts
            return f"{_quoted(found.constant)}::{kind}"
        return self.constant(found, kind.oid).text

    def part(self, node: Any) -> _Text:
        """One node with those below."""
        write = _NODES.get(type(node).__name__)
        if write is None:
            raise _AsWrittenError
        return write(self, node)

    # --- constants and casts

    def constant(self, unknown: _Text, oid: int) -> _Text:
        """A literal that is read as a type (get_const_expr)."""
        name = self.type_name(oid)
        value = unknown.constant
        if value is None:
            return _Text(f"NULL::{name}", oid, "NULL")
        if oid == BOOL and value.strip().lower() in _TRUE | _FALSE:
            word = "true" if value.strip().lower() in _TRUE else "false"
            return _Text(word, oid, word)
        if oid == _INTEGER and re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return _integer(int(value))
        if oid == _NUMERIC and re.fullmatch(r"\d+\.\d+", value):
            return _Text(value, oid, value)
        return _Text(f"{_quoted(value)}::{name}", oid, _quoted(value))

    def cast(self, given: _Text, oid: int) -> _Text:
        """An operand or argument as a type: literals are read, and a cast that nobody wrote is shown."""
        if given.oid == UNKNOWN:
            return self.constant(given, oid)
        if given.oid == oid or oid in _ANYTHING:
            return given
        if oid == _REGCLASS and given.constant is not None:
            return _Text(given.text, oid)  # a sequence, which kept texts call by its number
        return _Text(f"({given.text})::{self.type_name(oid)}", oid)

    def type_name(self, oid: int) -> str:
        """format_type(), but that users' types are named by oid."""
        if oid < 16384:
            kind = by_oid(oid)
            element = kind.element if kind.name in ARRAYS and kind.element is not None else kind
            return (
                str(kind) if element.name not in _ANY_LENGTH else _ANY_LENGTH[element.name] + "[]" * (element != kind)
            )
        if type_row(oid).kind == "c":
            raise _AsWrittenError
        declared = oid + 1 - oid % 2
        return f'{BY_OID}."{declared}"{"" if oid % 2 else "[]"}'

    def written_cast(self, node: Any) -> _Text:
        kind = type_of(self.binding, node.typeName)
        oid = kind.oid
        name = str(kind) if kind.typmod >= 0 else self.type_name(oid)
        inner = kind.element
        if inner is not None and type(node.arg).__name__ == "A_ArrayExpr" and inner.typmod < 0:
            return self.array(node.arg, inner.oid)
        if inner is not None and inner.typmod >= 0:
            raise _AsWrittenError
        given = self.part(node.arg)
        if given.oid == UNKNOWN:
            given = self.constant(given, oid)
        if kind.typmod < 0 and given.oid == oid:
            return given
        if given.oid == oid and given.constant is not None:
            return _Text(f"{given.constant}::{name}", oid)
        return _Text(f"({given.text})::{name}", oid)

    def literal(self, node: Any) -> _Text:
        if node.isnull:
            return _Text("NULL", UNKNOWN)
        value = node.val
        match type(value).__name__:
            case "Integer":
                return _integer(value.ival or 0)
            case "Float":
                return self._number(value.fval)
            case "Boolean":
                word = "true" if value.boolval else "false"
                return _Text(word, BOOL, word)
            case "String":
                return _Text(_quoted(value.sval), UNKNOWN, value.sval)
        raise _AsWrittenError

    def _number(self, text: str) -> _Text:
        oid = 20 if re.fullmatch(r"-?\d+", text) and abs(int(text)) < 1 << 63 else _NUMERIC
        if oid == _NUMERIC and re.fullmatch(r"\d*\.\d+|\d+\.\d*", text):
            return self.constant(_Text("", UNKNOWN, f"0{text}" if text.startswith(".") else text.rstrip(".")), oid)
        return self.constant(_Text("", UNKNOWN, text), oid)

    # --- operators

    def operation(self, name: str, left: Any, right: Any) -> _Text:
        """``(left name right)``, or a prefix operator's where there is no left."""
        first = None if left is None else self.part(left)
        return self.applied(name, first, self.part(right))

    def applied(self, name: str, left: _Text | None, right: _Text, between: str | None = None) -> _Text:
        found = operator(name, 0 if left is None else left.oid, right.oid)
        if found is None:
            raise _AsWrittenError
        operands = (None if left is None else left.oid, right.oid)
        known = next((oid for oid in operands if oid not in (None, UNKNOWN)), UNKNOWN)
        shown = [
            self.cast(item, known if oid in _ANYTHING and known is not None else oid)
            for item, oid in ((left, found.left), (right, found.right))
            if item is not None
        ]
        sources, targets = [item.oid for item in shown], [oid for oid in (found.left, found.right) if oid]
        result = result_type(found.result, sources, targets)
        if result is None:
            raise _AsWrittenError
        texts = [item.text for item in shown]
        word = between or name
        return _Text(f"({word} {texts[0]})" if left is None else f"({texts[0]} {word} {texts[1]})", result)

    def expression(self, node: Any) -> _Text:
        """A_Expr: operators, and what the grammar makes of them."""
        kind, name = node.kind, names_of(node.name)[-1]
        if kind in _AS_OPERATOR and len(node.name) == 1:
            return self.operation(name, node.lexpr, node.rexpr)
        if kind == A_Expr_Kind.AEXPR_DISTINCT:
            return self.applied("=", self.part(node.lexpr), self.part(node.rexpr), "IS DISTINCT FROM")
        if kind == A_Expr_Kind.AEXPR_NOT_DISTINCT:
            inner = self.applied("=", self.part(node.lexpr), self.part(node.rexpr), "IS DISTINCT FROM")
            return _Text(f"(NOT {inner.text})", BOOL)
        if kind in _BETWEEN:
            low, high, word = _BETWEEN[kind]
            first, second = node.rexpr
            lower, upper = self.operation(low, node.lexpr, first), self.operation(high, node.lexpr, second)
            return _Text(f"({lower.text} {word} {upper.text})", BOOL)
        if kind == A_Expr_Kind.AEXPR_IN:
            return self.membership(name, node.lexpr, node.rexpr)
        if kind in (A_Expr_Kind.AEXPR_OP_ANY, A_Expr_Kind.AEXPR_OP_ALL):
            word = "ANY" if kind == A_Expr_Kind.AEXPR_OP_ANY else "ALL"
            return self.any_of(name, word, self.part(node.lexpr), self.part(node.rexpr))
        if kind == A_Expr_Kind.AEXPR_NULLIF:
            return self.nullif(node)
        raise _AsWrittenError

    def nullif(self, node: Any) -> _Text:
        """NULLIF is its equality under another name."""
        left, right = self.part(node.lexpr), self.part(node.rexpr)
        found = operator("=", left.oid, right.oid)
        if found is None or {found.left, found.right} & _ANYTHING:
            raise _AsWrittenError
        first, second = self.cast(left, found.left), self.cast(right, found.right)
        return _Text(f"NULLIF({first.text}, {second.text})", found.left)

    def membership(self, name: str, left: Any, items: Sequence[Any]) -> _Text:
        """IN and NOT IN: = ANY and <> ALL of an array, or one comparison (transformAExprIn)."""
        value, members = self.part(left), [self.part(item) for item in items]
        if len(members) == 1:
            return self.applied(name, value, members[0])
        if any(type(item).__name__ != "A_Const" for item in items):
            raise _AsWrittenError
        agreed = common([value.oid, *(item.oid for item in members)])
        if agreed is None:
            raise _AsWrittenError
        array = self.array_of([self.cast(item, agreed) for item in members], agreed)
        return self.any_of(name, "ANY" if name == "=" else "ALL", value, array)

    def any_of(self, name: str, word: str, value: _Text, array: _Text) -> _Text:
        element = element_of(array.oid)
        found = operator(name, value.oid, element) if element else None
        if found is None or UNKNOWN in (value.oid, array.oid):
            raise _AsWrittenError
        left = self.cast(value, found.left)
        right = array if found.right in _ANYTHING else self.cast(array, array_of(found.right))
        return _Text(f"({left.text} {name} {word} ({right.text}))", BOOL)

    def logic(self, node: Any) -> _Text:
        parts = [self.cast(self.part(item), BOOL).text for item in node.args]
        if node.boolop == BoolExprType.NOT_EXPR:
            return _Text(f"(NOT {parts[0]})", BOOL)
        word = "AND" if node.boolop == BoolExprType.AND_EXPR else "OR"
        return _Text(f"({f' {word} '.join(parts)})", BOOL)

    def null_test(self, node: Any) -> _Text:
        found = self.part(node.arg)
        if category(found.oid) == "C" or found.oid in (UNKNOWN, RECORD):
            raise _AsWrittenError
        word = "IS NULL" if node.nulltesttype == NullTestType.IS_NULL else "IS NOT NULL"
        return _Text(f"({found.text} {word})", BOOL)

    def boolean_test(self, node: Any) -> _Text:
        found = self.cast(self.part(node.arg), BOOL)
        return _Text(f"({found.text} IS {_BOOLEAN_TESTS[node.booltesttype]})", BOOL)

    # --- calls

    def call(self, node: Any) -> _Text:
        names = names_of(node.funcname)
        name, given = names[-1], [self.part(item) for item in node.args or ()]
        special = (node.agg_order, node.agg_filter, node.over, node.agg_within_group, node.agg_star)
        if any(special) or node.agg_distinct or node.func_variadic or (len(names) > 1 and names[0] != "pg_catalog"):
            raise _AsWrittenError
        found = function_call(name, [item.oid for item in given])
        if not isinstance(found, Candidate) or found.spread:
            raise _AsWrittenError
        shown = [self.cast(item, oid) for item, oid in zip(given, found.arguments, strict=True)]
        if any(item.oid == UNKNOWN for item in shown):
            raise _AsWrittenError
        result = result_type(found.function.result, [item.oid for item in shown], found.arguments)
        if result is None:
            raise _AsWrittenError
        texts = [item.text for item in shown]
        if node.funcformat != CoercionForm.COERCE_SQL_SYNTAX:
            return _Text(f"{quote_name(name)}({', '.join(texts)})", result)
        match name:
            case "timezone":
                return _Text(f"({texts[1]} AT TIME ZONE {texts[0]})", result)
            case "extract" if given[0].constant is not None:
                return _Text(f"EXTRACT({given[0].constant} FROM {texts[1]})", result)
        raise _AsWrittenError

    def value_function(self, node: Any) -> _Text:
        """CURRENT_DATE and its kin."""
        word = ValueOp(node.op).name.removeprefix("SVFOP_")
        if word.endswith("_N"):
            raise _AsWrittenError
        oid = bind_tree(self.binding, node, self.columns, None).type.oid
        return _Text(word, oid)

    def coalesce(self, node: Any) -> _Text:
        return self._agreed("COALESCE", node.args)

    def extreme(self, node: Any) -> _Text:
        return self._agreed("GREATEST" if node.op == MinMaxOp.IS_GREATEST else "LEAST", node.args)

    def _agreed(self, word: str, nodes: Sequence[Any]) -> _Text:
        found = [self.part(item) for item in nodes]
        agreed = self._common(found)
        return _Text(f"{word}({', '.join(self.cast(item, agreed).text for item in found)})", agreed)

    def _common(self, found: Sequence[_Text]) -> int:
        agreed = common([item.oid for item in found])
        if agreed is None:
            raise _AsWrittenError
        return agreed

    def array(self, node: Any, element: int | None = None) -> _Text:
        found = [self.part(item) for item in node.elements or ()]
        if any(category(item.oid) == "A" for item in found) or (element is None and not found):
            raise _AsWrittenError
        agreed = self._common(found) if element is None else element
        return self.array_of([self.cast(item, agreed) for item in found], agreed)

    def array_of(self, parts: Sequence[_Text], element: int) -> _Text:
        oid = array_of(element)
        text = f"ARRAY[{', '.join(item.text for item in parts)}]"
        return _Text(text if parts else f"{text}::{self.type_name(oid)}", oid)

    def case(self, node: Any) -> _Text:
        """CASE on lines of its own, as PostgreSQL has it everywhere."""
        if node.arg is not None:
            raise _AsWrittenError
        self.indent += 4
        conditions = [self.cast(self.part(item.expr), BOOL) for item in node.args]
        results = [self.part(item.result) for item in node.args]
        last = _Text("NULL", UNKNOWN) if node.defresult is None else self.part(node.defresult)
        agreed = self._common([last, *results])
        self.indent -= 4
        outer, inner = "\n" + " " * self.indent, "\n" + " " * (self.indent + 4)
        branches = "".join(
            f"{inner}WHEN {when.text} THEN{_behind(self.cast(then, agreed))}"
            for when, then in zip(conditions, results, strict=True)
        )
        return _Text(f"{outer}CASE{branches}{inner}ELSE{_behind(self.cast(last, agreed))}{outer}END", agreed)

    def collated(self, node: Any) -> _Text:
        found = self.part(node.arg)
        return _Text(f"({found.text} COLLATE {quote_name(names_of(node.collname)[-1])})", found.oid)

    def column(self, node: Any) -> _Text:
        if len(node.fields) != 1 or type(node.fields[0]).__name__ != "String":
            raise _AsWrittenError
        name = node.fields[0].sval
        found = next((item for item in self.columns if item.name == name), None)
        if found is None:
            raise _AsWrittenError
        return _Text(quote_name(name), found.type.oid)


def _behind(part: _Text) -> str:
    """A part behind a word: on the next line where it begins one."""
    return part.text if part.text.startswith("\n") else f" {part.text}"


def _integer(value: int) -> _Text:
    """A number below zero is in quotes, or its sign would be an operator."""
    text = str(value) if value >= 0 else f"'{value}'::integer"
    return _Text(text, _INTEGER, text if value >= 0 else f"'{value}'")


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


_NODES: Final[dict[str, Callable[[_Writer, Any], _Text]]] = {
    "A_Const": _Writer.literal,
    "TypeCast": _Writer.written_cast,
    "A_Expr": _Writer.expression,
    "BoolExpr": _Writer.logic,
    "NullTest": _Writer.null_test,
    "BooleanTest": _Writer.boolean_test,
    "FuncCall": _Writer.call,
    "SQLValueFunction": _Writer.value_function,
    "CoalesceExpr": _Writer.coalesce,
    "MinMaxExpr": _Writer.extreme,
    "A_ArrayExpr": _Writer.array,
    "CaseExpr": _Writer.case,
    "CollateClause": _Writer.collated,
    "ColumnRef": _Writer.column,
}
