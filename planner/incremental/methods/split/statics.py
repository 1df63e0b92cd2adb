"""Static relations below groupings: evaluated once, at the view's creation, and kept as traces (thesis 4.2.2), or, for
a view WITH (tables = 'arrival'), as of the LSN of each row of the stream that meets them.

Owns the rule that a view sees each table at one moment. A table that anything below a grouping reads is read as of the
view's creation above them, too, or a view would show rows that never were beside each other:

    SELECT id, n, (SELECT count(*) FROM s WHERE s.v < r.n) FROM r      -- counted below a grouping, for each n of r
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import Fresh, volatility
from planner.algebra.nodes import Column, ColumnRef, Fixpoint, Project, Relation, Scan, Snapshot, Sort, Working
from planner.algebra.signature import key_of
from planner.algebra.walk import RELATIONS, descend, free_columns, walk
from planner.incremental.names import Names, stored_name
from planner.incremental.programs.program import Static
from planner.incremental.properties import Kinds
from planner.rules import optimise


class _Found(Struct, frozen=True):
    """A static relation: its trace's name and columns, one for each of the relation's."""

    name: str
    columns: tuple[Column, ...]
    relation: Relation


class Statics:
    """The static relations that a program's statements read, each once."""

    def __init__(self, fresh: Fresh, arrival: bool = False) -> None:
        """``arrival``: rows meet the tables as they stand when the rows are committed."""
        self._fresh = fresh
        self.arrival = arrival
        self._found: dict[Hashable, _Found] = {}

    def snapshot(self, relation: Relation) -> Snapshot:
        """The leaf that stands for a static relation, with its columns."""
        found = self._of(relation)
        return Snapshot(found.name, relation.columns, tuple(map(stored_name, found.columns)))

    def source(self, relation: Relation) -> tuple[str, tuple[Column, ...]]:
        """The name and stored columns of a static relation."""
        found = self._of(relation)
        return found.name, found.columns

    def frozen(self, relation: Relation, tables: Set[int] | None = None) -> Relation:
        """The relation with what reads no others than these tables (None: any) as of the view's creation. What no row
        of a stream meets has no moment of arrival: it is read as it is."""
        if self.arrival:
            return relation
        kinds = Kinds()

        def change(node: object) -> object:
            if not isinstance(node, RELATIONS) or kinds.of(node) != "static" or not _stands_alone(node):
                return node
            scanned = {item.oid for item in walk(node) if isinstance(item, Scan)}
            return self.snapshot(node) if scanned and (tables is None or scanned <= tables) else node

        found: Relation = descend(relation, change)
        return found

    def _of(self, relation: Relation) -> _Found:
        key = key_of(relation)
        if key not in self._found:
            names = Names()
            columns = tuple(
                replace(self._fresh.copy(column), name=names.unique(column.name)) for column in relation.columns
            )
            self._found[key] = _Found(f"static_{len(self._found) + 1}", columns, relation)
        return self._found[key]

    def planned(self, statements: Iterable[Relation]) -> tuple[Static, ...]:
        """The statics that statements still read, with only the columns that they read."""
        used: dict[str, set[str]] = {}
        for statement in statements:
            for node in walk(statement):
                if isinstance(node, Snapshot):
                    used.setdefault(node.trace, set()).update(node.sources)
        found = (item for item in self._found.values() if item.name in used)
        return tuple(_planned(item, used[item.name], self.arrival) for item in found)


def _stands_alone(relation: Relation) -> bool:
    """Whether a relation has equal rows at any time and for any role, and no order."""
    recursions = {item.name for item in walk(relation) if isinstance(item, Fixpoint)}
    if any(isinstance(item, Working) and item.name not in recursions for item in walk(relation)):
        return False
    return not isinstance(relation, Sort) and volatility(relation) == "immutable" and not free_columns(relation)


def scanned_tables(statics: Iterable[Static]) -> dict[int, str]:
    """The tables that statics read: names by oid."""
    return {node.oid: node.name for static in statics for node in walk(static.relation) if isinstance(node, Scan)}


def _planned(found: _Found, used: set[str], arrival: bool) -> Static:
    pairs = zip(found.columns, found.relation.columns, strict=True)
    outputs = tuple((column, ColumnRef(below)) for column, below in pairs if stored_name(column) in used)
    relation = optimise(Project(found.relation, outputs))
    reads_tables = any(isinstance(node, Scan) for node in walk(relation))
    return Static(found.name, relation, relation.columns, arrival and reads_tables)
