"""Joined tables that several views have in common, and relations that read their rows.

Two plans are sharable where they have the same operators, but for filters and projections (iShare, section 2.3). Here
these are inner joins of tables, each of which occurs once: a part has the tables that two views have in common, as far
as equalities connect them, the predicates that both have, and the columns that one of them needs. A predicate that only
one view has is asked by that view of the part's rows; the paper has the part mark rows by view instead.

A place is a column of a table: the table's oid and the column's name. Within parts columns are called by their places,
so that equal predicates of two views are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import Fresh, conjuncts, filtered, keep_columns, rename_columns
from planner.algebra.failures import may_raise
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    Values,
)
from planner.algebra.signature import entries
from planner.algebra.walk import descend_relations, inputs, replace_columns, used_columns
from planner.incremental.dataflow.rewrites.join_regions import is_plain
from planner.rules import optimise
from planner.rules.joins.join_graph import is_inside, region_of

#: A table's oid, and the name of its column.
Place = tuple[int, str]
#: The oids of parts, which no catalog has, begin here.
FIRST_PART: Final = 1 << 32
_EQUALITIES: Final = ("eq", "is_not_distinct")


class JoinPart(Struct, frozen=True):
    """The rows of ``tables``, their names by oid, for which all ``predicates`` are true, with the ``columns`` at some
    places. Predicates are known by what they say."""

    tables: Mapping[int, str]
    predicates: Mapping[Any, Scalar]
    columns: Mapping[Place, Column]

    @property
    def key(self) -> tuple[Any, ...]:
        """What equal parts share."""
        return frozenset(self.tables), frozenset(self.predicates), frozenset(self.columns)

    @property
    def rows(self) -> tuple[Any, ...]:
        """What parts share that have the same rows, whichever columns they show."""
        return frozenset(self.tables), frozenset(self.predicates)

    def with_columns(self, other: JoinPart) -> JoinPart:
        """The part with the columns of another one of the same rows, too."""
        return replace(self, columns={**self.columns, **other.columns})

    @property
    def shown(self) -> tuple[Place, ...]:
        """The places of its columns, in order."""
        return tuple(sorted(self.columns))

    @property
    def title(self) -> str:
        """The part in words."""
        return f"the shared join of {', '.join(self.tables[oid] for oid in sorted(self.tables))}"

    def relation(self) -> Relation:
        """The relation whose rows these are; its columns are in the order of the places ``shown``."""
        used = self.used
        numbered = {column: replace(column, id=number) for number, column in enumerate(_by_place(used), 1)}
        scans = [_scan(oid, name, used) for oid, name in sorted(self.tables.items())]
        found = filtered(_crossed(scans), self.predicates.values())
        found = keep_columns(found, tuple(self.columns[place] for place in self.shown))
        relation: Relation = optimise(rename_columns(found, numbered))
        return relation

    def needed(self, below: JoinPart) -> dict[Place, Column]:
        """The columns of another part that this one needs, if it reads the other's rows."""
        asked = (scalar for key, scalar in self.predicates.items() if key not in below.predicates)
        found = {**self.columns, **dict(_placed(column) for scalar in asked for column in used_columns(scalar))}
        return {place: column for place, column in found.items() if place[0] in below.tables}

    def may_read(self, below: JoinPart) -> bool:
        """Whether the rows of this part can be made of those of another one and of further tables."""
        is_within = self.tables.keys() >= below.tables.keys() and self.predicates.keys() >= below.predicates.keys()
        return is_within and below.columns.keys() >= self.needed(below).keys()

    @property
    def used(self) -> dict[Place, Column]:
        """The columns of its tables that it reads."""
        asked = (_placed(column) for scalar in self.predicates.values() for column in used_columns(scalar))
        return {**dict(asked), **self.columns}


def parts_of(relation: Relation) -> Iterator[JoinPart]:
    """The joined tables in a relation."""
    stack: list[Relation] = [relation]
    while stack:
        node = stack.pop()
        joins = _joins_at(node)
        if joins is None:
            stack.extend(inputs(node))
            continue
        stack.extend(joins.others)
        if len(joins.part.tables) > 1:
            yield joins.part


def is_part(scan: Scan) -> bool:
    """Whether a scan reads the rows of a part."""
    return scan.oid >= FIRST_PART


def common(one: JoinPart, other: JoinPart) -> Iterator[JoinPart]:
    """The parts that two parts may both read: of the tables that they have in common, those that are connected."""
    predicates = {key: scalar for key, scalar in one.predicates.items() if key in other.predicates}
    for tables in _connected(one.tables.keys() & other.tables.keys(), predicates.values()):
        asked = {key: scalar for key, scalar in predicates.items() if _tables_of(scalar) <= tables}
        found = JoinPart({oid: one.tables[oid] for oid in tables}, asked, {})
        columns = {**one.needed(found), **other.needed(found)}
        if not columns:  # rows are counted, so there must be a column
            columns = dict([min(_placed(column) for scalar in asked.values() for column in used_columns(scalar))])
        yield replace(found, columns=columns)


def reading(relation: Relation, part: JoinPart, oid: int) -> Relation:
    """A relation whose joins read the rows of a part, which are those of the view ``oid``, where they may."""
    fresh = Fresh(relation)

    def change(node: Any) -> Any:
        joins = _joins_at(node)
        if joins is None or not joins.part.may_read(part):
            return node
        found = joins.over(part, oid, fresh)
        return found if joins.root is node else replace(node, input=found)

    changed: Relation = descend_relations(relation, change)
    if changed is relation:
        return relation
    found: Relation = optimise(changed)
    return found


class _Joins(Struct, frozen=True):
    """Inner joins with the ``root``, of which the ``shown`` columns are used above: their ``part`` of tables, by which
    ``names`` its columns are called there, the ``others`` that are joined, the ``tables``, and the ``predicates``."""

    root: Relation
    shown: tuple[Column, ...]
    part: JoinPart
    names: Mapping[Column, Column]
    tables: tuple[Scan, ...]
    others: tuple[Relation, ...]
    predicates: tuple[Scalar, ...]

    def over(self, part: JoinPart, oid: int, fresh: Fresh) -> Relation:
        """The rows of these joins over those of a part."""
        own = {_placed(name)[0]: column for column, name in self.names.items()}
        read = {place: own[place] for place in sorted(self.part.needed(part))}
        if not read:  # rows are counted, so there must be a column
            place = part.shown[0]
            read = {place: fresh.copy(part.columns[place])}
        rows = Scan(oid, part.title, "view", tuple(read.values()), tuple(map(source_of, read)))
        others = [*self.others, *(scan for scan in self.tables if scan.oid not in part.tables)]
        asked = (item for item in self.predicates if _key(_called(item, self.names)) not in part.predicates)
        return keep_columns(filtered(_crossed([rows, *others]), asked), self.shown)


def _joins_at(node: Relation) -> _Joins | None:
    """The inner joins of which a node is the root, or has the root as its input."""
    if is_inside(node):
        return _joins(node, node.columns)
    if not isinstance(node, Aggregate | Project) or not is_inside(node.input):
        return None
    used = used_columns(replace(node, input=Values(node.input.columns, ())))
    return _joins(node.input, tuple(column for column in node.input.columns if column in used))


def _joins(root: Relation, shown: tuple[Column, ...]) -> _Joins:
    region = region_of(root)
    predicates = [item.predicate for item in region.parts]
    leaves: list[Relation] = []
    for leaf in region.leaves:
        while isinstance(leaf, Filter) and is_plain(leaf.predicate) and isinstance(leaf.input, Filter | Scan):
            predicates.extend(conjuncts(leaf.predicate))
            leaf = leaf.input
        leaves.append(leaf)
    oids = [leaf.oid for leaf in leaves if isinstance(leaf, Scan)]
    tables = [leaf for leaf in leaves if isinstance(leaf, Scan) and leaf.kind == "table" and oids.count(leaf.oid) == 1]
    names = {
        column: _column(scan.oid, source, column)
        for scan in tables
        for source, column in zip(scan.sources, scan.columns, strict=True)
    }
    others = tuple(leaf for leaf in leaves if leaf not in tables)
    part = _part(tables, names, shown, predicates)
    return _Joins(root, shown, part, names, tuple(tables), others, tuple(predicates))


def _part(
    tables: Iterable[Scan], names: Mapping[Column, Column], shown: Iterable[Column], predicates: Iterable[Scalar]
) -> JoinPart:
    """What may be shared of joins."""
    shared: dict[Any, Scalar] = {}
    columns = {names[column] for column in shown if column in names}
    for item in predicates:
        used = used_columns(item)
        if used <= names.keys() and is_plain(item) and not may_raise(item):
            called = _called(item, names)
            shared[_key(called)] = called
        else:
            columns |= {names[column] for column in used if column in names}
    return JoinPart({scan.oid: scan.name for scan in tables}, shared, dict(map(_placed, columns)))


def source_of(place: Place) -> str:
    """What the column at a place is called in the rows of a part."""
    oid, source = place
    return f"{oid}.{source}"


def _column(oid: int, source: str, column: Column) -> Column:
    """Two views may know differently whether it can be NULL: it is one column all the same."""
    name = source_of((oid, source))
    return Column(crc32(name.encode()), name, column.type)


def _placed(column: Column) -> tuple[Place, Column]:
    oid, source = column.name.split(".", 1)
    return (int(oid), source), column


def _by_place(columns: Mapping[Place, Column]) -> list[Column]:
    return [columns[place] for place in sorted(columns)]


def _called(scalar: Scalar, names: Mapping[Column, Column]) -> Scalar:
    """A predicate over columns that are called by their places; the sides of an equality have one order."""
    found: Scalar = replace_columns(scalar, {column: ColumnRef(name) for column, name in names.items()})
    if isinstance(found, Call) and found.function in _EQUALITIES:
        return replace(found, arguments=tuple(sorted(found.arguments, key=lambda item: repr(_key(item)))))
    return found


def _key(scalar: Scalar) -> Any:
    """What equal predicates share."""
    return entries(scalar, {column: column.name for column in used_columns(scalar)})


def _tables_of(scalar: Scalar) -> set[int]:
    return {_placed(column)[0][0] for column in used_columns(scalar)}


def _connected(tables: Collection[int], predicates: Iterable[Scalar]) -> list[set[int]]:
    """The tables, two or more, that equalities connect."""
    groups = [{oid} for oid in tables]
    for scalar in predicates:
        is_equality = isinstance(scalar, Call) and scalar.function in _EQUALITIES
        met = [group for group in groups if group & _tables_of(scalar)]
        if is_equality and met[1:] and _tables_of(scalar) <= set(tables):
            groups = [group for group in groups if group not in met] + [set().union(*met)]
    return [group for group in groups if len(group) > 1]


def _crossed(relations: list[Any]) -> Relation:
    """All pairs of rows; predicates above make joins of them."""
    found: Relation = relations[0]
    for relation in relations[1:]:
        found = Join("inner", found, relation, None)
    return found


def _scan(oid: int, name: str, columns: Mapping[Place, Column]) -> Scan:
    own = {source: columns[oid_, source] for oid_, source in sorted(columns) if oid_ == oid}
    return Scan(oid, name, "table", tuple(own.values()), tuple(own))
