"""Writes analysed expressions as text (ruleutils.c, get_rule_expr).

Owns: ``Printer``, which collects the text, and one function per kind of node. Without ``pretty``, every operation is in
parentheses; with it, only where precedence requires them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from catalog.values.identifiers import quote_name
from planner.bind.deparsing.item_names import NOTHING, Named
from planner.bind.deparsing.trees import (
    Aggregate,
    Array,
    Call,
    Case,
    Cast,
    Collate,
    Const,
    Frame,
    Listed,
    Logic,
    Merged,
    Node,
    Operation,
    Quantified,
    Query,
    RowCompare,
    SessionValue,
    SortItem,
    SubLink,
    Subscript,
    Test,
    Var,
)

#: Indentation, in spaces, of a clause, of a JOIN in it and of the text below a keyword; beyond LIMIT it grows more
#: slowly.
STANDARD: Final = 8
JOIN: Final = 4
VARIABLE: Final = 4
_LIMIT: Final = 40
_INTEGER, _NUMERIC, _BOOL, _UNKNOWN = 23, 1700, 16, 705


class Printer(Struct):
    """A text under construction. ``type_name`` is format_type(), ``write_query`` is ``layout.show_query``."""

    type_name: Callable[[int, int], str]
    write_query: Callable[[Printer, Query, Sequence[str] | None, bool], None]
    pretty: bool = False
    text: str = ""
    indent: int = 0
    named: Named = NOTHING

    def add(self, text: str) -> None:
        """Appends text."""
        self.text += text

    def line(self, word: str, before: int = 0, after: int = 0, plus: int = 0) -> None:
        """Appends a keyword on a new line (appendContextKeyword)."""
        self.indent += before
        level = max(self.indent, 0)
        if level >= _LIMIT:
            level = (_LIMIT + (level - _LIMIT) // (STANDARD // 2)) % _LIMIT
        self.text = self.text.rstrip(" ") + "\n" + " " * (level + plus) + word
        self.indent = max(self.indent + after, 0)

    def apart(self, write: Callable[[], None]) -> str:
        """The text that a call writes, kept apart from the text so far."""
        before, self.text = self.text, ""
        write()
        found, self.text = self.text, before
        return found

    # --- expressions

    def show(self, node: Node, implicit: bool = True) -> None:
        """An expression; ``implicit``: with the implicit casts at its top."""
        _WRITERS[type(node)](self, node, implicit)

    def operand(self, node: Node, parent: Node, implicit: bool = True) -> None:
        """An expression within another, in parentheses where the two need them (get_rule_expr_paren)."""
        needs = self.pretty and not is_simple(node, parent)
        self.add("(" if needs else "")
        self.show(node, implicit)
        self.add(")" if needs else "")

    def items(self, nodes: Sequence[Node], implicit: bool = True) -> None:
        """Expressions, separated by commas."""
        for index, node in enumerate(nodes):
            self.add(", " if index else "")
            self.show(node, implicit)

    def opened(self) -> None:
        """The parenthesis before an operation."""
        self.add("" if self.pretty else "(")

    def closed(self) -> None:
        """The parenthesis after an operation."""
        self.add("" if self.pretty else ")")

    def constant(self, node: Const, label: int = 0) -> None:
        """A constant; ``label``: with its type if needed (0), always (1) or never (-1) (get_const_expr)."""
        typed = f"::{self.type_name(node.oid, node.typmod)}" if node.oid != _UNKNOWN else ""
        if node.text is None:
            self.add("NULL" + (typed if label >= 0 else ""))
            return
        shown, needed = node.text, True
        if node.oid == _INTEGER and node.text.isdecimal():
            needed = False
        elif node.oid == _NUMERIC and re.fullmatch(r"\d+\.\d+", node.text):
            needed = node.typmod >= 0
        elif node.oid == _BOOL and node.text in ("t", "f"):
            shown, needed = "true" if node.text == "t" else "false", False
        else:
            shown = quoted(node.text)
        self.add(shown + (typed if label > 0 or (label == 0 and needed) else ""))

    def sort_key(self, node: Node, place: int | None = None) -> None:
        """An item of ORDER BY, GROUP BY and the like (get_rule_sortgroupclause)."""
        if place is not None:
            self.add(str(place))
        elif isinstance(node, Const):
            self.constant(node, 1)
        elif isinstance(node, Var | Merged):
            self.show(node)
        else:
            needs = self.pretty or isinstance(node, Call | Aggregate) or (isinstance(node, Cast) and not node.relabel)
            self.add("(" if needs else "")
            self.show(node)
            self.add(")" if needs else "")

    def order(self, items: Sequence[SortItem], by_number: bool = False) -> None:
        """The items after ORDER BY."""
        for index, item in enumerate(items):
            self.add(", " if index else "")
            self.sort_key(item.node, item.place if by_number else None)
            self.add(" DESC" if item.descending else "")
            if item.nulls_first != item.descending:
                self.add(" NULLS FIRST" if item.nulls_first else " NULLS LAST")

    def window(self, frame: Frame) -> None:
        """A window's definition (get_rule_windowspec)."""
        parts: list[str] = [] if frame.refers is None else [quote_name(frame.refers)]

        def keys() -> None:
            for index, node in enumerate(frame.partition):
                self.add(", " if index else "")
                self.sort_key(node)

        if frame.partition and frame.refers is None:
            parts.append("PARTITION BY " + self.apart(keys))
        if frame.order:
            parts.append("ORDER BY " + self.apart(lambda: self.order(frame.order)))
        offsets = iter(frame.offsets)
        for word in frame.words:
            parts.append(self.apart(lambda: self.show(next(offsets), False)) if word is None else word)
        self.add(f"({' '.join(parts)})")


def quoted(text: str) -> str:
    """A string as a literal; backslashes mean themselves (standard_conforming_strings)."""
    return "'" + text.replace("'", "''") + "'"


# --- one function per kind -------------------------------------------------------------------------------------------


def _constant(to: Printer, node: Const, implicit: bool) -> None:
    to.constant(node)


def _variable(to: Printer, node: Var, implicit: bool) -> None:
    source = to.named.names.get(id(node.source), node.source.name)
    columns = to.named.columns.get(id(node.source), node.source.real)
    to.add(f"{quote_name(source)}." if source else "")
    to.add(quote_name(columns[node.place]))


def _merged(to: Printer, node: Merged, implicit: bool) -> None:
    to.add(quote_name(node.name))


def _operation(to: Printer, node: Operation, implicit: bool) -> None:
    to.opened()
    if len(node.arguments) == 1:
        to.add(f"{node.name} ")
        to.operand(node.arguments[0], node)
    else:
        to.operand(node.arguments[0], node)
        to.add(f" {node.name} ")
        to.operand(node.arguments[1], node)
    to.closed()


def _cast(to: Printer, node: Cast, implicit: bool) -> None:
    if node.implicit and not implicit:
        to.operand(node.argument, node, False)
        return
    argument = node.argument
    if isinstance(argument, Const) and (argument.oid, argument.typmod) == (node.oid, -1):
        to.constant(argument, -1)
    else:
        to.opened()
        to.operand(argument, node, False)
        to.closed()
    to.add(f"::{to.type_name(node.oid, node.typmod)}")


def _logic(to: Printer, node: Logic, implicit: bool) -> None:
    to.opened()
    if node.word == "NOT":
        to.add("NOT ")
    for index, item in enumerate(node.arguments):
        to.add(f" {node.word} " if index else "")
        to.operand(item, node, False)
    to.closed()


def _test(to: Printer, node: Test, implicit: bool) -> None:
    to.opened()
    to.operand(node.argument, node, node.words.endswith("NULL"))
    to.add(f" {node.words}")
    to.closed()


def _quantified(to: Printer, node: Quantified, implicit: bool) -> None:
    to.opened()
    to.operand(node.left, node)
    to.add(f" {node.name} {node.word} (")
    to.operand(node.right, node)
    if isinstance(node.right, SubLink) and node.right.kind == "value":
        to.add(f"::{to.type_name(node.right.oid, -1)}")  # else it is read as a list of rows
    to.add(")")
    to.closed()


def _listed(to: Printer, node: Listed, implicit: bool) -> None:
    to.add(f"{node.word}(")
    to.items(node.arguments)
    to.add(")")


def _rows(to: Printer, node: RowCompare, implicit: bool) -> None:
    to.add("(ROW(")
    to.items(node.left)
    to.add(f") {node.name} ROW(")
    to.items(node.right)
    to.add("))")


def _array(to: Printer, node: Array, implicit: bool) -> None:
    to.add("ARRAY[")
    to.items(node.elements)
    to.add("]")
    if not node.elements:
        to.add(f"::{to.type_name(node.oid, -1)}")


def _case(to: Printer, node: Case, implicit: bool) -> None:
    to.line("CASE", 0, VARIABLE)
    if node.argument is not None:
        to.add(" ")
        to.show(node.argument)
    for when, then in node.branches:
        to.line("WHEN ")
        to.show(when.arguments[1] if node.argument is not None and isinstance(when, Operation) else when, False)
        to.add(" THEN ")
        to.show(then)
    to.line("ELSE ")
    to.show(node.otherwise)
    to.line("END", -VARIABLE)


def _session_value(to: Printer, node: SessionValue, implicit: bool) -> None:
    to.add(node.word)


def _collate(to: Printer, node: Collate, implicit: bool) -> None:
    to.opened()
    to.operand(node.argument, node, implicit)
    to.add(f" COLLATE {node.name}")
    to.closed()


def _subscript(to: Printer, node: Subscript, implicit: bool) -> None:
    needs = not isinstance(node.argument, Var)
    to.add("(" if needs else "")
    to.show(node.argument, implicit)
    to.add(")" if needs else "")
    for index in node.indices:
        to.add("[")
        for place, part in enumerate(index):
            to.add(":" if place else "")
            if part is not None:
                to.show(part, False)
        to.add("]")


def _call(to: Printer, node: Call, implicit: bool) -> None:
    if node.syntax:
        _in_words(to, node)
        return
    to.add(f"{node.name}(")
    for index, item in enumerate(node.arguments):
        to.add(", " if index else "")
        to.add("VARIADIC " if node.variadic and index == len(node.arguments) - 1 else "")
        to.show(item)
    to.add(")")


#: The text around the arguments, which are given by their places.
_SYNTAX: Final[dict[tuple[str, int], tuple[str | int, ...]]] = {
    ("timezone", 2): ("(", 1, " AT TIME ZONE ", 0, ")"),
    ("overlaps", 4): ("((", 0, ", ", 1, ") OVERLAPS (", 2, ", ", 3, "))"),
    ("position", 2): ("POSITION((", 1, ") IN (", 0, "))"),
    ("substring", 2): ("SUBSTRING(", 0, " FROM ", 1, ")"),
    ("substring", 3): ("SUBSTRING(", 0, " FROM ", 1, " FOR ", 2, ")"),
    ("overlay", 3): ("OVERLAY(", 0, " PLACING ", 1, " FROM ", 2, ")"),
    ("overlay", 4): ("OVERLAY(", 0, " PLACING ", 1, " FROM ", 2, " FOR ", 3, ")"),
    ("normalize", 1): ("NORMALIZE(", 0, ")"),
    **{
        key: value
        for name, word in (("btrim", "BOTH"), ("ltrim", "LEADING"), ("rtrim", "TRAILING"))
        for key, value in (
            ((name, 1), (f"TRIM({word} FROM ", 0, ")")),
            ((name, 2), (f"TRIM({word} ", 1, " FROM ", 0, ")")),
        )
    },
}


def _in_words(to: Printer, node: Call) -> None:
    """Calls in SQL's own syntax for them (get_func_sql_syntax)."""
    first = node.arguments[0]
    if node.name == "extract" and isinstance(first, Const):
        to.add(f"EXTRACT({first.text} FROM ")
        to.show(node.arguments[1], False)
        to.add(")")
        return
    for part in _SYNTAX[node.name, len(node.arguments)]:
        if isinstance(part, str):
            to.add(part)
        else:
            to.operand(node.arguments[part], node, False)


def _aggregate(to: Printer, node: Aggregate, implicit: bool) -> None:
    to.add(f"{node.name}({'DISTINCT ' if node.distinct else ''}")
    if node.star:
        to.add("*")
    for index, item in enumerate(node.arguments):
        to.add(", " if index else "")
        to.add("VARIADIC " if node.variadic and index == len(node.arguments) - 1 else "")
        to.show(item)
    if node.order:
        to.add(") WITHIN GROUP (ORDER BY " if node.within else " ORDER BY ")
        to.order(node.order)
    if node.filter is not None:
        to.add(") FILTER (WHERE ")
        to.show(node.filter, False)
    to.add(")")
    if node.over is not None:
        to.add(" OVER ")
        if node.over.name is None:
            to.window(node.over)
        else:
            to.add(quote_name(node.over.name))


def _sublink(to: Printer, node: SubLink, implicit: bool) -> None:
    to.add("ARRAY(" if node.kind == "array" else "(")
    if node.kind == "exists":
        to.add("EXISTS (")
    elif node.kind == "tests":
        to.add("(" if len(node.tests) > 1 else "")
        to.items(node.tests)
        to.add(")" if len(node.tests) > 1 else "")
        to.add(f" {node.words} (")
    to.write_query(to, node.query, None, False)
    to.add("))" if node.kind in ("exists", "tests") else ")")


_WRITERS: Final[dict[type, Callable[[Printer, Any, bool], None]]] = {
    Const: _constant,
    Var: _variable,
    Merged: _merged,
    Operation: _operation,
    Cast: _cast,
    Logic: _logic,
    Test: _test,
    Quantified: _quantified,
    Listed: _listed,
    RowCompare: _rows,
    Array: _array,
    Case: _case,
    SessionValue: _session_value,
    Collate: _collate,
    Subscript: _subscript,
    Call: _call,
    Aggregate: _aggregate,
    SubLink: _sublink,
}


# --- parentheses -----------------------------------------------------------------------------------------------------

_ALWAYS: Final = (
    *(Var, Merged, Const, Subscript, Array, Listed, SessionValue, Aggregate, Call, Case),
)  # fmt: skip
#: Within these nodes, an operation needs no parentheses of its own.
_SEPARATING: Final = (Subscript, Array, Listed, Aggregate, Case)


def is_simple(node: Node, parent: Node) -> bool:
    """Whether a node needs no parentheses within its parent (isSimpleNode)."""
    match node:
        case Cast(relabel=True, argument=argument):
            return is_simple(argument, node)
        case Cast():
            return True
        case Operation() if isinstance(parent, Operation) and " " not in node.name + parent.name:
            return _binds_tighter(node, parent)
        case Operation() | SubLink() | Test():
            return _stands_alone(parent) or isinstance(parent, Logic)
        case Logic() if isinstance(parent, Logic):
            return parent.word == "OR" or (parent.word == "AND" and node.word != "OR")
        case Logic():
            return _stands_alone(parent)
    return isinstance(node, _ALWAYS)


def _stands_alone(parent: Node) -> bool:
    return isinstance(parent, _SEPARATING) or (isinstance(parent, Call) and not parent.syntax)


def _binds_tighter(node: Operation, parent: Operation) -> bool:
    """Whether operator precedence alone makes parentheses unnecessary, for basic arithmetic."""
    names = (node.name[0], parent.name[0])
    if len(node.arguments) < 2 or len(parent.arguments) < 2 or not all(name in "+-*/%" for name in names):
        return False
    inner, outer = (name in "*/%" for name in names)
    return node is parent.arguments[0] if inner == outer else inner
