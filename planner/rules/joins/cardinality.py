"""How many rows relations have, about: textbook selectivities over what statistics tell (Selinger et al. 1979).

    x = c         1 / distinct(x)                      x = y      1 / max(distinct(x), distinct(y)) where both were
    x < c         the share of [low, high]                        counted; else as if the smaller side were a key
    key = y       1 / rows of the key's table          p AND q    both multiplied, p OR q  p + q - p q

so that a foreign key's join with its table has the rows of the foreign key's side, times what the other side's filters
leave: the fan-out is exact where the catalog knows the key. Counts are of rows, not of work. Nothing here is looked up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Final

from msgspec import Struct

from catalog.values.types import BOOL
from planner.algebra.construction import SUBQUERIES, conjuncts
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Fixpoint,
    InZone,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Window,
    Working,
)
from planner.algebra.walk import RELATIONS, inputs, used_columns, walk
from planner.statistics import ColumnStatistics, Statistics, TableStatistics

#: Rows of a relation of which nothing is known, and of an interval of a stream.
_ROWS: Final = 1000.0
#: Distinct values of a column, or of an expression, of which nothing is known (PostgreSQL's number).
_DISTINCT: Final = 200.0
#: Shares of rows for which predicates are true of which nothing is known (Selinger et al., table 1).
_RANGE: Final = 1 / 3
_PATTERN: Final = 0.1
_NULL: Final = 0.05
_ANY: Final = 1 / 3
_SUBQUERY: Final = 0.5
#: Elements of an array, rows of a recursion for each row that it begins with.
_ELEMENTS: Final = 10.0
#: Values of a part of a time, and days of a span of time.
_PARTS: Final = {"month": 12.0, "day": 31.0, "dow": 7.0, "isodow": 7.0, "hour": 24.0, "minute": 60.0, "quarter": 4.0}
_DAYS: Final = {"year": 365.0, "quarter": 90.0, "month": 28.0, "week": 7.0, "day": 1.0, "hour": 1 / 24}
#: The most keys that are known of a join.
_KEYS: Final = 8
#: Comparisons with an order, and whether they bound their first argument from below.
_RANGES: Final = {"lt": False, "le": False, "gt": True, "ge": True}


class _Known(Struct, frozen=True):
    """A column's values, and the rows of the relation that they are in before any filter."""

    values: ColumnStatistics
    rows: float

    @property
    def is_counted(self) -> bool:
        """Whether something is known of how many distinct values there are."""
        return self.values.distinct is not None or _whole(self.values.low) is not None

    @property
    def most(self) -> float:
        """Distinct values at most."""
        if self.values.distinct is not None:
            return max(1.0, min(self.values.distinct, self.rows))
        low, high = _whole(self.values.low), _whole(self.values.high)
        width = self.rows if low is None or high is None else high - low + 1
        return max(1.0, min(width, self.rows))


class _Key(Struct, frozen=True):
    """Columns that no two rows of a relation share: the key of a table or grouping, or keys ``of`` several together."""

    columns: frozenset[Column]
    of: tuple[Relation, ...]


class Cardinality:
    """Estimates for the relations of one plan."""

    def __init__(self, root: Relation, statistics: Statistics, counted: Iterable[tuple[Relation, float]] = ()) -> None:
        """``counted`` has the rows of relations of which they are known."""
        self._statistics = statistics
        self._known: dict[Column, _Known] = {}
        self._keys = NodeMap[list[_Key]]()
        self._rows = NodeMap[float](counted)
        for node in reversed(list(walk(root))):
            if isinstance(node, RELATIONS):
                self._learn(node)

    def knows(self, relation: Relation) -> bool:
        """Whether there are statistics of all that a relation reads."""
        for node in walk(relation):
            match node:
                case Scan(oid=name) | Snapshot(trace=name) if name not in self._statistics:
                    return False
                case Delta() | Working():
                    return False
                case _:
                    pass
        return True

    def statistics(self, relation: Relation, names: Mapping[Column, str]) -> TableStatistics:
        """What is known of a relation's rows, if its columns have such ``names``."""
        rows = self.rows(relation)
        known = {column: self._known[column] for column in relation.columns if column in self._known}
        columns = {
            names[column]: ColumnStatistics(min(item.most, rows), item.values.low, item.values.high)
            for column, item in known.items()
            if item.is_counted
        }
        keys = (key.columns for key in self._keys.of(relation) or () if key.columns <= names.keys())
        return TableStatistics(rows, columns, tuple(frozenset(names[column] for column in key) for key in keys))

    def rows(self, relation: Relation) -> float:
        """A relation's rows."""
        pending = [relation]
        while pending:
            node = pending[-1]
            missing = [item for item in inputs(node) if item not in self._rows]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if node not in self._rows:
                self._learn(node)
                self._rows[node] = self._count(node)
        return self._rows[relation]

    # -- relations -------------------------------------------------------------------------------------------------

    def _learn(self, node: Relation) -> None:
        """Notes what is known of the columns that a relation brings in, and of its keys."""
        match node:
            case Scan(oid=name) | Snapshot(trace=name) if name in self._statistics:
                table = self._statistics[name]
                for column, source in zip(node.columns, node.sources, strict=True):
                    self._known[column] = _Known(table.columns.get(source, ColumnStatistics()), table.rows)
            case Project(outputs=pairs) | Aggregate(keys=pairs):
                for column, value in pairs:
                    if isinstance(value, ColumnRef) and value.column in self._known:
                        self._known[column] = self._known[value.column]
            case _:
                pass
        self._keys[node] = self._keys_of(node)

    def _count(self, node: Relation) -> float:
        below = [self._rows[item] for item in inputs(node)]
        match node:
            case Scan(oid=name) | Snapshot(trace=name):
                table = self._statistics.get(name)
                return _ROWS if table is None else table.rows
            case Values(rows=rows):
                return float(len(rows))
            case Filter(predicate=predicate):
                return below[0] * self.selectivity(predicate)
            case Aggregate(keys=keys):
                return min(below[0], self._groups([value for _, value in keys])) if keys else 1.0
            case Limit(count=Literal(value=int(count))):
                return min(below[0], float(count))
            case Unnest() | Fixpoint():
                return below[0] * _ELEMENTS
            case Join():
                return self._joined(node, *below)
            case SetOperation(kind=kind):
                return {"union": sum(below), "intersect": min(below), "except": below[0]}[kind]
            case Project() | Window() | Sort() | Limit() | InZone():
                return below[0]
            case Delta():
                return _ROWS
            case _:
                return below[-1] if below else _ROWS

    def alike(self, relation: Relation, columns: Collection[Column]) -> float:
        """The rows of a relation that have one combination of values of some columns."""
        rows = self.rows(relation)
        if any(key.columns <= frozenset(columns) for key in self._keys.of(relation) or ()):
            return min(1.0, rows)
        return rows / max(1.0, min(rows, self._groups([ColumnRef(column) for column in columns])))

    def _groups(self, values: Sequence[Scalar]) -> float:
        found = 1.0
        for value in values:
            found *= self.distinct(value) or self._distinct(value)
        return found

    def pairs(self, node: Join) -> float:
        """The pairs of rows of a join's sides that meet its predicate."""
        share = self.link(node.left, node.right, list(conjuncts(node.predicate)))
        return self.rows(node.left) * self.rows(node.right) * share

    def _joined(self, node: Join, left: float, right: float) -> float:
        pairs = self.pairs(node)
        match node.kind:
            case "left":
                return max(left, pairs)
            case "right":
                return max(right, pairs)
            case "full":
                return max(left, right, pairs)
            case "semi":
                return min(left * _SUBQUERY, pairs)
            case "anti":
                return left * _SUBQUERY
            case _:
                return pairs

    # -- joins -----------------------------------------------------------------------------------------------------

    def link(self, left: Relation, right: Relation, parts: Sequence[Scalar]) -> float:
        """The share of two relations' pairs for which the predicates between them are true."""
        sides = set(left.columns), set(right.columns)
        equal = [pair for pair in (_equal_columns(part, *sides) for part in parts) if pair is not None]
        share = 1.0
        for part in parts:
            share *= 1.0 if _equal_columns(part, *sides) else self.selectivity(part)
        if not equal:
            return share
        of_keys = [
            self._rows_of_key(key)
            for relation, columns in ((left, {one for one, _ in equal}), (right, {other for _, other in equal}))
            for key in self._keys.of(relation) or ()
            if key.columns <= columns
        ]
        if of_keys:
            return share / max(1.0, *of_keys)
        return share * max(self._equal(equal), 1 / max(1.0, self._smaller(equal)))

    def _equal(self, pairs: Iterable[tuple[Column, Column]]) -> float:
        """The share of pairs that are equal in all of some columns."""
        share = 1.0
        for one, other in pairs:
            known = [item for item in (self._known.get(one), self._known.get(other)) if item is not None]
            counted = len(known) == 2 and all(item.values.distinct is not None for item in known)
            most = [item.most for item in known] or [_DISTINCT]
            share /= max(most) if counted else min(most)
        return share

    def _smaller(self, pairs: Iterable[tuple[Column, Column]]) -> float:
        """Rows of the smaller of two tables whose columns are compared."""
        rows = [self._known[column].rows for pair in pairs for column in pair if column in self._known]
        return min(rows, default=_DISTINCT)

    def _keys_of(self, node: Relation) -> list[_Key]:
        """Sets of a relation's columns that no two of its rows share, those of its inputs being known."""
        match node:
            case Filter() | Sort() | Limit() | Window():
                return self._keys.of(node.input) or []
            case Project(outputs=outputs):
                passed = {value.column: column for column, value in outputs if isinstance(value, ColumnRef)}
                below = self._keys.of(node.input) or []
                return [
                    _Key(frozenset(passed[c] for c in key.columns), key.of)
                    for key in below
                    if key.columns <= passed.keys()
                ]
            case Join(kind="semi" | "anti"):
                return self._keys.of(node.left) or []
            case Join():
                return self._keys_of_pairs(node)
            case Aggregate(keys=keys) if keys:
                return [_Key(frozenset(column for column, _ in keys), (node,))]
            case Scan(oid=name) | Snapshot(trace=name) if name in self._statistics:
                own = dict(zip(node.sources, node.columns, strict=True))
                keys_read = (key for key in self._statistics[name].keys if key <= own.keys())
                return [_Key(frozenset(own[item] for item in key), (node,)) for key in keys_read]
            case _:
                return []

    def _keys_of_pairs(self, node: Join) -> list[_Key]:
        """Those of a join: a key of each side together, and a side's own where its rows meet at most one each."""
        left, right = self._keys.of(node.left) or [], self._keys.of(node.right) or []
        left_meets_one, right_meets_one = self.meets_one(node)
        own = [*left] if node.kind in ("inner", "left") and left_meets_one else []
        own += right if node.kind in ("inner", "right") and right_meets_one else []
        both = [_Key(one.columns | other.columns, (*one.of, *other.of)) for one in left for other in right]
        return [*own, *both][:_KEYS]

    def meets_one(self, node: Join) -> tuple[bool, bool]:
        """Whether a row of a join's left side meets one row of the right side at most, and the other way round."""
        sides = set(node.left.columns), set(node.right.columns)
        equal = [pair for part in conjuncts(node.predicate) if (pair := _equal_columns(part, *sides)) is not None]
        ours, theirs = {one for one, _ in equal}, {other for _, other in equal}
        left, right = self._keys.of(node.left) or (), self._keys.of(node.right) or ()
        return any(key.columns <= theirs for key in right), any(key.columns <= ours for key in left)

    def _rows_of_key(self, key: _Key) -> float:
        """The rows of the tables and groupings whose key it is, before any filter."""
        rows = 1.0
        for node in key.of:
            known = (
                self._statistics.get(node.oid if isinstance(node, Scan) else node.trace)
                if isinstance(node, Scan | Snapshot)
                else None
            )
            rows *= self.rows(node) if known is None else known.rows
        return rows

    # -- predicates ------------------------------------------------------------------------------------------------

    def selectivity(self, predicate: Scalar) -> float:
        """The share of rows for which a predicate is true; two bounds of one column are an interval."""
        share = 1.0
        bounds: dict[tuple[Column, bool], float] = {}
        for part in conjuncts(predicate):
            bound = self._bound(part)
            if bound is None:
                share *= self._share(part)
            else:
                column, is_lower, beyond = bound
                bounds[column, is_lower] = min(beyond, bounds.get((column, is_lower), 1.0))
        for column in dict.fromkeys(column for column, _ in bounds):
            between = bounds.get((column, True), 1.0) + bounds.get((column, False), 1.0) - 1
            share *= max(between, 1 / self._known[column].most)
        return share

    def _share(self, part: Scalar) -> float:
        match part:
            case Literal(value=value):
                return 1.0 if value is True else 0.0
            case Call(function="or", arguments=arguments):
                rest = 1.0
                for item in arguments:
                    rest *= 1 - self.selectivity(item)
                return 1 - rest
            case Call(function="not", arguments=(inner,)):
                return 1 - self.selectivity(inner)
            case Call(function="eq", arguments=(left, right)):
                return self._equality(left, right)
            case Call(function="ne", arguments=(left, right)):
                return 1 - self._equality(left, right)
            case Call(function="in", arguments=(first, *others)):
                return min(1.0, len(others) / self._distinct(first))
            case Call(function=function) if function in _RANGES:
                bound = self._bound(part)
                return _RANGE if bound is None else bound[2]
            case Call(function="like" | "ilike" | "starts_with" | "regex_match" | "regex_imatch"):
                return _PATTERN
            case Call(function="is_null"):
                return _NULL
            case Call(function="is_not_null"):
                return 1 - _NULL
            case _:
                return _SUBQUERY if isinstance(part, SUBQUERIES) else _ANY

    def _equality(self, left: Scalar, right: Scalar) -> float:
        constant = isinstance(left, Literal), isinstance(right, Literal)
        if constant == (False, True):
            return 1 / self._distinct(left)
        if constant == (True, False):
            return 1 / self._distinct(right)
        return 1 / max(self._distinct(left), self._distinct(right))

    def distinct(self, value: Scalar) -> float | None:
        """How many values an expression has, at most; None where nothing is known of it."""
        match value:
            case Literal():
                return 1.0
            case Call(function="extract", arguments=(Literal(value=str(unit)), time)) if unit in _PARTS:
                return min(_PARTS[unit], self.distinct(time) or _PARTS[unit])
            case Call(function="extract" | "date_trunc", arguments=(Literal(value=str(unit)), time)) if unit in _DAYS:
                return self._spans(time, _DAYS[unit])
            case _ if value.type == BOOL:
                return 3.0  # with NULL
            case _:
                return self.combinations(used_columns(value))

    def combinations(self, columns: Iterable[Column]) -> float | None:
        """How many combinations of values some columns have, at most; None where nothing is known of one."""
        found = 1.0
        for column in columns:
            known = self._known.get(column)
            if known is None or not known.is_counted:
                return None
            found *= known.most
        return found

    def _distinct(self, value: Scalar) -> float:
        """How many values an expression has, at most; a guess where nothing is known of it."""
        column = _bare(value)
        known = None if column is None else self._known.get(column)
        if known is None:
            return _DISTINCT
        if not known.is_counted:
            return max(1.0, min(_DISTINCT, known.rows))
        return known.most

    def _spans(self, time: Scalar, days: float) -> float | None:
        """Into how many spans of some days the values of a time fall, at most."""
        column = _bare(time)
        known = None if column is None else self._known.get(column)
        low, high = (None, None) if known is None else (_number(known.values.low), _number(known.values.high))
        return self.distinct(time) if low is None or high is None else (high - low) // days + 2

    def _bound(self, part: Scalar) -> tuple[Column, bool, float] | None:
        """A column that a part compares with a constant, whether that bounds it from below, and the share of its
        values beyond the bound, as if they lay evenly."""
        if not isinstance(part, Call) or part.function not in _RANGES:
            return None
        left, right = part.arguments
        is_lower = _RANGES[part.function]
        if isinstance(left, Literal):
            left, right, is_lower = right, left, not is_lower
        column = _bare(left)
        if column is None or column not in self._known or not isinstance(right, Literal):
            return None
        values = self._known[column].values
        low, high, value = _number(values.low), _number(values.high), _number(right.value)
        if low is None or high is None or value is None or high <= low:
            return None
        below = min(1.0, max(0.0, (value - low) / (high - low)))
        return column, is_lower, 1 - below if is_lower else below


def _equal_columns(part: Scalar, left: set[Column], right: set[Column]) -> tuple[Column, Column] | None:
    """The columns of both sides that a part takes to be equal."""
    match part:
        case Call(function="eq" | "is_not_distinct", arguments=(one, other)):
            found = _bare(one), _bare(other)
            for first, second in (found, found[::-1]):
                if first in left and second in right:
                    return first, second
    return None


def _bare(value: Scalar) -> Column | None:
    """A column, also behind conversions."""
    while isinstance(value, Cast):
        value = value.argument
    return value.column if isinstance(value, ColumnRef) else None


def _number(value: object) -> float | None:
    """A value's place among those of its type; None where it has none."""
    match value:
        case bool() | None:
            return None
        case int() | float() | Decimal():
            return float(value) if isfinite(value) else None
        case dt.datetime():
            return value.toordinal() + (value.hour * 3600 + value.minute * 60 + value.second) / 86_400
        case dt.date():
            return float(value.toordinal())
        case _:
            return None


def _whole(value: object) -> float | None:
    """The range of types whose values can be counted."""
    counted = isinstance(value, int | dt.date) and not isinstance(value, dt.datetime)
    return _number(value) if counted else None
