"""Scalars, aggregates and sort keys as SQL-like text, as PostgreSQL's EXPLAIN writes them: columns by name.

For people and golden files only; nothing parses it. Iterative, as expressions may be deep.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Final

from catalog.values import multiranges, ranges
from catalog.values.types import RANGES, SPANS
from planner.algebra.functions import OPERATORS, WINDOW_FUNCTIONS
from planner.algebra.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    InSubquery,
    Literal,
    Parameter,
    Scalar,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from planner.algebra.walk import RELATIONS, children

Item = Scalar | AggregateCall | WindowCall | SortKey

_POSTFIX: Final = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}
#: Literals that need no cast to be read with their type.
_PLAIN: Final = frozenset(("int2", "int4", "int8", "numeric", "float8", "bool", "text", "varchar", "bpchar", "unknown"))


def deparse(item: Item, names: Mapping[Column, str] | None = None) -> str:
    """The text of an expression; ``names`` are those of columns whose own name would not tell them apart."""
    done: list[str] = []
    stack: list[tuple[Item, int]] = [(item, -1)]
    while stack:
        node, count = stack.pop()
        if count < 0:
            below = [child for child in children(node) if not isinstance(child, RELATIONS)]
            stack.append((node, len(below)))
            stack.extend((child, -1) for child in reversed(below))
            continue
        split = len(done) - count
        parts = done[split:]
        del done[split:]
        done.append(_text(node, parts, names or {}))
    return done[0]


def _text(node: Item, parts: list[str], names: Mapping[Column, str]) -> str:
    match node:
        case ColumnRef(column=column):
            return names.get(column, column.name)
        case Literal():
            return _literal(node)
        case Parameter(index=index):
            return f"${index + 1}"
        case Call():
            return _call(node, parts)
        case Cast():
            return f"{parts[0]}::{node.type}"
        case Case():
            pairs = zip(parts[:-1:2], parts[1::2], strict=True)
            branches = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
            return f"CASE {branches} ELSE {parts[-1]} END"
        case ScalarSubquery():
            return "(SubPlan)"
        case Exists():
            return "EXISTS(SubPlan)"
        case InSubquery():
            return f"({parts[0]} = ANY (SubPlan))"
        case SortKey():
            return _sort_key(node, parts[0])
        case AggregateCall():
            return _aggregate(node, parts)
        case WindowCall():
            return _window(node, parts)


def _call(node: Call, parts: list[str]) -> str:
    if node.function in OPERATORS:
        return f"({f' {OPERATORS[node.function]} '.join(parts)})"
    if node.function in _POSTFIX:
        return f"({parts[0]} {_POSTFIX[node.function]})"
    match node.function:
        case "not":
            return f"(NOT {parts[0]})"
        case "neg":
            return f"(- {parts[0]})"
        case "in":
            return f"({parts[0]} = ANY ({', '.join(parts[1:])}))"
        case "row":
            return f"ROW({', '.join(parts)})"
        case "field":
            return f"({parts[0]}).{_field(node)}"
        case name:
            return f"{name}({', '.join(parts)})"


def _field(node: Call) -> str:
    row, place = node.arguments
    assert row.type.row is not None
    assert isinstance(place, Literal)
    assert isinstance(place.value, int)
    return row.type.row.fields[place.value - 1][0]


def _aggregate(node: AggregateCall, parts: list[str]) -> str:
    arguments = parts[: len(node.arguments)]
    rest = parts[len(node.arguments) :]
    where = f" FILTER (WHERE {rest.pop(0)})" if node.filter is not None else ""
    distinct = "DISTINCT " if node.distinct else ""
    order = f" ORDER BY {', '.join(rest)}" if rest else ""
    return f"{node.function}({distinct}{', '.join(arguments) or '*'}{order}){where}"


def _window(node: WindowCall, parts: list[str]) -> str:
    """As written; the frame only where it is not PostgreSQL's default."""
    rest = iter(parts)
    arguments = [next(rest) for _ in node.arguments]
    partition = [next(rest) for _ in node.partition]
    order = [next(rest) for _ in node.order_by]
    offsets = iter([next(rest) for _ in node.offsets])
    where = f" FILTER (WHERE {next(rest)})" if node.filter is not None else ""
    clauses = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    clauses += [f"ORDER BY {', '.join(order)}"] if order else []
    if (node.mode, node.start, node.end, node.exclude) != ("range", "unbounded_preceding", "current_row", "no_others"):
        bounds = " AND ".join(_bound(bound, offsets) for bound in (node.start, node.end))
        exclude = "" if node.exclude == "no_others" else f" EXCLUDE {node.exclude.replace('_', ' ').upper()}"
        clauses.append(f"{node.mode.upper()} BETWEEN {bounds}{exclude}")
    shown = ", ".join(arguments) or ("" if node.function in WINDOW_FUNCTIONS else "*")
    return f"{node.function}({shown}){where} OVER ({' '.join(clauses)})"


def _bound(bound: str, offsets: Iterator[str]) -> str:
    words = bound.replace("_", " ").upper()
    return f"{next(offsets)} {words}" if bound in ("preceding", "following") else words


def _sort_key(key: SortKey, text: str) -> str:
    """Direction and NULLs only where they are not PostgreSQL's default."""
    direction = " DESC" if key.descending else ""
    if key.nulls_first == key.descending:
        return f"{text}{direction}"
    return f"{text}{direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _literal(literal: Literal) -> str:
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind.name == "interval" and isinstance(value, tuple):
        months, days, micros = value
        return f"'{months} mons {days} days {micros / 1_000_000:g} secs'::interval"
    if kind.enum is not None:
        value = kind.enum.labels[kind.enum.places.index(int(str(value)))]
    if kind.name in SPANS and isinstance(value, bytes):
        value = (ranges if kind.name in RANGES else multiranges).written(kind, value)
    if isinstance(value, str):
        text = "'" + value.replace("'", "''") + "'"
    elif isinstance(value, bytes):
        text = f"'\\x{value.hex()}'"
    elif isinstance(value, dt.datetime):
        text = f"'{value.isoformat(' ')}'"
    elif isinstance(value, float) and kind.name in ("date", "timestamp", "timestamptz"):
        text = "'infinity'" if value > 0 else "'-infinity'"
    elif isinstance(value, dt.date | dt.time):
        text = f"'{value.isoformat()}'"
    else:
        text = str(value)
    return text if kind.name in _PLAIN else f"{text}::{kind}"
