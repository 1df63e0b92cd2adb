"""Plans as text for EXPLAIN, in PostgreSQL's manner, and as JSON values.

Owns the words. Reads algebra and changes nothing. A filter prints as an attribute of the operator that it filters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Fixpoint,
    InZone,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Window,
    With,
    Working,
)
from planner.algebra.walk import Node, children, inputs, produced_columns, walk
from planner.explain.scalars import Item, deparse

_JOINS: Final[dict[JoinKind, str]] = {
    "inner": "Join",
    "left": "Left Join",
    "right": "Right Join",
    "full": "Full Join",
    "semi": "Semi Join",
    "anti": "Anti Join",
}
_SCANS: Final = {
    "table": "Scan on",
    "stream": "Stream Scan on",
    "files": "File Scan on",
    "view": "View Scan on",
    "system": "System Scan on",
    "changes": "Changes of",
    "history": "History Scan on",
    "query": "Rest of Query",
}


#: Estimates of a relation's rows.
Rows = Callable[[Relation], float]


class _Operator(Struct, frozen=True):
    """One operator in words, and what is printed below it: inputs, then relations nested in expressions."""

    title: str
    attributes: tuple[tuple[str, str], ...]
    below: tuple[Relation, ...]


# -- relations ---------------------------------------------------------------------------------------------------------


def explain_relation(relation: Relation, rows: Rows | None = None) -> list[str]:
    """The plan tree, one line per operator and attribute; with estimated rows where these decided about it."""
    return list(tree_lines(relation, 0, "", rows))


def tree_lines(root: Relation, indent: int, arrow: str, rows: Rows | None = None) -> Iterator[str]:
    """The plan tree, each line so far to the right, the root behind an arrow."""
    describe = _Describer(root)
    stack: list[tuple[Relation, int, str]] = [(root, indent, arrow)]
    while stack:
        relation, margin, mark = stack.pop()
        entry = describe.operator(relation)
        estimated = "" if rows is None else f"  (rows={_rounded(rows(relation))})"
        yield f"{' ' * margin}{mark}{entry.title}{estimated}"
        inner = margin + len(mark) + 2
        yield from (f"{' ' * inner}{name}: {text}" for name, text in entry.attributes)
        stack.extend((child, inner, "->  ") for child in reversed(entry.below))


def _rounded(rows: float) -> int:
    """As PostgreSQL shows estimates: whole rows, at least one."""
    return max(1, round(rows))


def relation_json(relation: Relation, rows: Rows | None = None) -> dict[str, Any]:
    """The plan tree as EXPLAIN (FORMAT JSON) nests it."""
    describe = _Describer(relation)
    root: list[dict[str, Any]] = []
    stack: list[tuple[Relation, list[dict[str, Any]]]] = [(relation, root)]
    while stack:
        item, siblings = stack.pop()
        entry = describe.operator(item)
        value: dict[str, Any] = {"Node Type": entry.title, **dict(entry.attributes)}
        if rows is not None:
            value["Plan Rows"] = _rounded(rows(item))
        siblings.append(value)
        if entry.below:
            value["Plans"] = []
            stack.extend((child, value["Plans"]) for child in reversed(entry.below))
    return root[0]


def _nested(node: Relation) -> list[Relation]:
    """Relations nested in an operator's expressions."""
    below = inputs(node)
    found: list[Relation] = []
    scalars = [child for child in children(node) if not any(child is item for item in below)]
    while scalars:
        for child in children(scalars.pop()):
            if isinstance(child, Relation):
                found.append(child)
            else:
                scalars.append(child)
    return found


class _Describer:
    """Operators in words; columns that share a name with another carry their relation's name before it."""

    def __init__(self, root: Relation) -> None:
        produced = produced_columns(root)
        uses = Counter(column.name for column in produced)
        self._names: dict[Column, str] = {}
        for node in reversed(list(walk(root))):
            self._names.update((column, name) for column, name in self._origins(node) if uses[column.name] > 1)

    def _origins(self, node: Node) -> Iterator[tuple[Column, str]]:
        """Columns of a leaf with its name, and those that pass one on with the name that it has there."""
        match node:
            case Scan() | Delta():
                yield from ((column, f"{node.name}.{column.name}") for column in node.columns)
            case Snapshot():
                yield from ((column, f"{node.trace}.{column.name}") for column in node.columns)
            case Project(outputs=pairs) | Aggregate(keys=pairs):
                for column, value in pairs:
                    if isinstance(value, ColumnRef) and value.column.name == column.name:
                        yield column, self._names.get(value.column, column.name)
            case _:
                pass

    def operator(self, relation: Relation) -> _Operator:
        """The operator below any filters, with the filters as its attribute."""
        predicates: list[str] = []
        nested: list[Relation] = []
        while isinstance(relation, Filter):
            predicates.insert(0, self._text(relation.predicate))
            nested = _nested(relation) + nested
            relation = relation.input
        title, attributes = self._words(relation)
        filters = (("Filter", " AND ".join(predicates)),) if predicates else ()
        below = (*inputs(relation), *_nested(relation), *nested)
        return _Operator(title, (*attributes, *filters), below)

    def _words(self, node: Relation) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The title and attributes of an operator."""
        match node:
            case Scan():
                return (f"{_SCANS[node.kind]} {node.name}{_columns(node)}", ())
            case Snapshot():
                return (f"Snapshot of {node.trace}{_columns(node)}", ())
            case Delta():
                return (f"Delta of {node.name}{_columns(node)}", ())
            case Values():
                return ("Result" if not node.columns else f"Values ({len(node.rows)} rows)", ())
            case Project():
                return ("Project", (("Output", self._named(node.outputs)),))
            case Join():
                cross = node.kind == "inner" and node.predicate is None
                condition = () if node.predicate is None else (("Join Cond", self._text(node.predicate)),)
                return ("Cross Join" if cross else _JOINS[node.kind], condition)
            case Aggregate():
                keys = (("Group Key", self._named(node.keys)),) if node.keys else ()
                calls = (("Aggregates", self._named(node.aggregates)),) if node.aggregates else ()
                return ("Group" if node.keys else "Aggregate", (*keys, *calls))
            case Window():
                return ("Window", (("Calls", self._named(node.calls)),))
            case Unnest():
                number = (("Ordinality", node.ordinality.name),) if node.ordinality is not None else ()
                return ("Unnest", (("Items", self._named(node.items)), *number))
            case Sort():
                return ("Sort", (("Sort Key", ", ".join(map(self._text, node.keys))),))
            case Limit():
                parts = (("Count", node.count), ("Offset", node.offset))
                return ("Limit", tuple((name, self._text(part)) for name, part in parts if part is not None))
            case Fixpoint():
                return (f"Recursive Union{' All' if node.all else ''} {node.name}", ())
            case Working():
                return (f"Working Rows of {node.name}", ())
            case SetOperation():
                return (f"{node.kind.title()}{' All' if node.all else ''}", ())
            case InZone():
                return ("Time Zone", (("Name", node.zone),))
            case With():
                return ("With", (("Once", ", ".join(name for name, _ in node.definitions)),))
            case Filter():
                raise AssertionError("filters are attributes")

    def _text(self, item: Item) -> str:
        return deparse(item, self._names)

    def _named(self, items: tuple[tuple[Column, Any], ...]) -> str:
        """Expressions with the names of their columns, where these are other."""
        return ", ".join(self._as(column, item) for column, item in items)

    def _as(self, column: Column, item: Item) -> str:
        text = self._text(item)
        same = isinstance(item, ColumnRef) and item.column.name == column.name
        return text if same else f"{text} AS {column.name}"


def _columns(leaf: Scan | Snapshot | Delta) -> str:
    """The columns that are read."""
    return f" ({', '.join(column.name for column in leaf.columns)})"
