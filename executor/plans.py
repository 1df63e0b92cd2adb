"""Queries in the form in which they run: optimised, with what they read; those seen before are remembered.

Knows nothing of moments, transactions or engines (``executor/queries``).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from executor.analytics import joined_scans
from executor.files.pruning import FileReading, filters_of
from executor.small import Small, small_of
from planner.algebra import Project, Relation, Scan
from planner.cancellation import leave
from planner.expression import ColumnRef
from planner.order_system_rows import order_system_rows
from planner.placement import BREAKERS
from planner.rules import optimise
from planner.walk import Node, find, kinds_of

_REMEMBERED: Final = 1024
SCANS: Final = kinds_of(Scan)
_BREAKERS: Final = kinds_of(*BREAKERS)


class Plan(Struct, frozen=True):
    """An optimised relation and what it reads, by oid. ``small`` evaluates it over a few rows without an engine.

    ``files`` are what it reads of foreign tables of files, one for each, ``left`` the queries that it goes on with;
    ``arriving``: it reads a stream itself. ``breakers`` counts what an engine finishes before it goes on.
    """

    relation: Relation
    tables: tuple[int, ...]
    views: tuple[int, ...]
    system: tuple[int, ...]
    files: tuple[FileReading, ...]
    left: tuple[Scan, ...]
    small: Small | None = None
    arriving: bool = False
    breakers: int = 0

    @property
    def is_of_catalogs(self) -> bool:
        """Whether it reads system relations alone: for their few rows it takes longer to wake other threads."""
        return bool(self.system) and not (self.tables or self.views or self.files or self.left)


def _optimised(relation: Relation) -> Plan:
    return plan_of(optimise(order_system_rows(relation)))


def plan_of(relation: Relation) -> Plan:
    """What a relation reads."""
    arriving = any(scan.arrives for scan in find(relation, SCANS))
    breakers = sum(1 for _ in find(relation, _BREAKERS))
    return Plan(relation, *reads((relation,)), None if arriving else small_of(relation), arriving, breakers)


def reads(
    nodes: Sequence[Node],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[FileReading, ...], tuple[Scan, ...]]:
    """The oids of the tables, continuous views and system views that some trees read, what of which files, and the
    queries that they go on with."""
    scans: list[Scan] = [scan for root in nodes for scan in find(root, SCANS)]

    def oids(kind: str) -> tuple[int, ...]:
        return tuple(sorted({scan.oid for scan in scans if scan.kind == kind}))

    files = joined_scans(scan for scan in scans if scan.kind == "files")
    readings = (FileReading(scan, filters_of(nodes, scan.oid)) for scan in files)
    left = joined_scans(scan for scan in scans if scan.kind == "query")
    return oids("table"), oids("view"), oids("system"), tuple(readings), left


class PlanCache:
    """Plans of relations seen before, by identity: the server binds an equal statement once."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[Relation, Plan]] = {}
        self._lock = threading.Lock()

    def get(self, relation: Relation) -> Plan:
        """The relation's plan."""
        known = self._plans.get(id(relation))
        if known is not None and known[0] is relation:
            return known[1]
        plan = leave(_optimised, relation)
        with self._lock:
            if len(self._plans) >= _REMEMBERED:
                self._plans.clear()
            self._plans[id(relation)] = (relation, plan)
        return plan


def bare_view(relation: Relation) -> tuple[int, list[str]] | None:
    """(view, column names) of a relation that only picks columns of one continuous view; no engine is needed for it."""
    scan = relation.input if isinstance(relation, Project) else relation
    if not isinstance(scan, Scan) or scan.kind != "view":
        return None
    names = dict(zip(scan.columns, scan.sources, strict=True))
    outputs = relation.outputs if isinstance(relation, Project) else tuple((c, ColumnRef(c)) for c in scan.columns)
    wanted = [names[value.column] for _, value in outputs if isinstance(value, ColumnRef)]
    return (scan.oid, wanted) if len(wanted) == len(outputs) else None
