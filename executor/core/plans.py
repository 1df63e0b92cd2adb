"""Queries in the form in which they run: optimised, with what they read; those seen before are remembered.

Knows nothing of moments, transactions or engines (``executor/queries``).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import LARGE_QUOTIENT, QUOTIENT
from executor.files.partition_pruning import FileReading, filters_of
from executor.identity_cache import Remembered
from executor.small import Small, small_of
from planner.algebra.construction import conjuncts, volatility
from planner.algebra.nodes import (
    Call,
    ColumnRef,
    Filter,
    Fixpoint,
    Join,
    Literal,
    Parameter,
    Project,
    Relation,
    Scan,
    Unnest,
    Value,
)
from planner.algebra.walk import Node, contains, find, is_larger, kinds_of
from planner.cancellation import leave
from planner.incremental.dataflow.keyable import are_comparable, same_value
from planner.lowering.parameter_lists import VALUES, General, with_lists
from planner.placement import BREAKERS, reads_system_alone
from planner.rules import optimise
from planner.rules.row_order.order_system_rows import order_system_rows
from planner.statements.statement import Query

_REMEMBERED: Final = 1024
#: Nodes of a query that takes longer to compare than to plan.
_LARGE: Final = 4096
SCANS: Final = kinds_of(Scan)
_BREAKERS: Final = kinds_of(*BREAKERS)
#: What may make many rows of a few.
_WIDE: Final = kinds_of(Join, Unnest, Fixpoint)
_CALLS: Final = kinds_of(Call)
_FILTERS: Final = kinds_of(Filter)
_COLUMNS: Final = kinds_of(ColumnRef)
_OF_LISTS: Final = frozenset(("array_subscripts",))


class Lookup(Struct, frozen=True):
    """The rows of a view that a query reads: those whose ``columns`` equal ``values``, literals and parameters."""

    columns: tuple[str, ...]
    values: tuple[Literal | Parameter, ...]


class Plan(Struct, frozen=True):
    """An optimised relation and what it reads, by oid. ``small`` evaluates it over a few rows without an engine.

    ``files`` are what it reads of foreign tables of files, one for each, ``left`` the queries that it goes on with, and
    ``histories`` what it reads of rows that are kept of streams;
    ``arriving``: it reads a stream itself. ``breakers`` counts what an engine finishes before it goes on.
    ``stays_few``: over inputs of a few rows it makes a few, so that they need not be read while they are computed.
    ``immutable``: its inputs alone tell its rows.
    """

    relation: Relation
    tables: tuple[int, ...]
    views: tuple[int, ...]
    system: tuple[int, ...]
    files: tuple[FileReading, ...]
    left: tuple[Scan, ...]
    histories: tuple[Scan, ...]
    small: Small | None = None
    arriving: bool = False
    breakers: int = 0
    stays_few: bool = False
    immutable: bool = False
    #: By view, the columns that it reads as quotients, with their Arrow types.
    quotients: Mapping[int, Mapping[str, pa.DataType]] = {}
    #: Views of which it reads the rows with some values alone.
    lookups: Mapping[int, Lookup] = {}

    @property
    def needs_one_thread(self) -> bool:
        """Whether it reads system relations alone, or only computes: for few rows it takes longer to wake other
        threads, and clients that ask nothing else need one instance of the engine."""
        reads_others = self.tables or self.views or self.files or self.left or self.histories
        return not reads_others and (bool(self.system) or self.stays_few)


def _optimised(relation: Relation) -> Plan:
    return plan_of(optimise(order_system_rows(relation)))


def plan_of(relation: Relation) -> Plan:
    """What a relation reads."""
    arriving = any(scan.arrives for scan in find(relation, SCANS))
    breakers = sum(1 for _ in find(relation, _BREAKERS))
    stays_few = all(map(_keeps_few, find(relation, _WIDE)))
    immutable = volatility(relation) == "immutable"
    small = None if arriving else small_of(relation)
    found = reads((relation,))
    quotients, lookups = _quotients(relation), _lookups(relation)
    return Plan(relation, *found, small, arriving, breakers, stays_few, immutable, quotients, lookups)


def _lookups(relation: Relation) -> dict[int, Lookup]:
    """By view that is scanned once, under a filter that compares columns with values."""
    scans = Counter(scan.oid for scan in find(relation, SCANS) if scan.kind == "view")
    if not scans:
        return {}
    found = {}
    for item in find(relation, _FILTERS):
        scan = item.input
        if isinstance(scan, Scan) and scans.get(scan.oid) == 1 and (lookup := _lookup(item, scan)) is not None:
            found[scan.oid] = lookup
    return found


def _lookup(item: Filter, scan: Scan) -> Lookup | None:
    names = dict(zip(scan.columns, scan.sources, strict=True))
    found: dict[str, Literal | Parameter] = {}
    for part in conjuncts(item.predicate):
        if not isinstance(part, Call) or part.function != "eq":
            continue
        arguments = tuple(map(same_value, part.arguments))
        for one, other in (arguments, arguments[::-1]):
            match one, other:
                case ColumnRef(column=column), (Literal() | Parameter()) as value if (
                    column in names  # not one of a query outside
                    and are_comparable(one.type, value.type)
                ):
                    found[names[column]] = value
                case _:
                    pass
    columns = tuple(sorted(found))
    return Lookup(columns, tuple(found[name] for name in columns)) if found else None


def _quotients(relation: Relation) -> dict[int, dict[str, pa.DataType]]:
    found: dict[int, dict[str, pa.DataType]] = {}
    for scan in find(relation, SCANS):
        if scan.kind == "view":
            for column, source in zip(scan.columns, scan.sources, strict=True):
                if column.type.name == "numeric" and column.type.modifiers in (QUOTIENT, LARGE_QUOTIENT):
                    found.setdefault(scan.oid, {})[source] = column.type.arrow
    return found


def _keeps_few(node: Node) -> bool:
    """Whether a node makes of a few rows a few: it joins by equal values, or its lists are columns' values."""
    match node:
        case Join(kind="semi" | "anti"):
            return True
        case Join(predicate=predicate):
            equalities = (part for part in conjuncts(predicate) if isinstance(part, Call) and part.function == "eq")
            return any(all(contains(side, _COLUMNS) for side in part.arguments) for part in equalities)
        case Unnest(items=items):
            calls = {call.function for _, item in items for call in find(item, _CALLS)}
            return calls <= _OF_LISTS
        case _:
            return False


def reads(
    nodes: Sequence[Node],
) -> tuple[
    tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[FileReading, ...], tuple[Scan, ...], tuple[Scan, ...]
]:
    """The oids of the tables, continuous views and system views that some trees read, what of which files, the
    queries that they go on with, and what of which streams' histories."""
    scans: list[Scan] = [scan for root in nodes for scan in find(root, SCANS)]

    def oids(kind: str) -> tuple[int, ...]:
        return tuple(sorted({scan.oid for scan in scans if scan.kind == kind}))

    files = joined_scans(scan for scan in scans if scan.kind == "files")
    readings = (FileReading(scan, filters_of(nodes, scan.oid)) for scan in files)
    left = joined_scans(scan for scan in scans if scan.kind == "query")
    histories = joined_scans(scan for scan in scans if scan.kind == "history")
    return oids("table"), oids("view"), oids("system"), tuple(readings), left, histories


class PlanCache:
    """Plans of relations seen before, by identity: the server binds an equal statement once. Of ``most`` relations; all
    are forgotten beyond that."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._plans = Remembered[Relation, Plan](lambda relation: leave(_optimised, relation), most)
        self._general = Remembered(self._generalised, _REMEMBERED)
        #: General queries by what they are made of.
        self._known: dict[bytes, Relation] = {}
        self._lock = threading.Lock()

    def general(self, query: Query, parameters: tuple[Value, ...]) -> tuple[Query, tuple[Value, ...]]:
        """A query and its parameters; of one over system relations alone the same relation for lists of any length, so
        that it is planned once."""
        general = self._general(query.relation)
        if general is None:
            return query, parameters
        return replace(query, relation=general.relation), general.values(parameters)

    def _generalised(self, relation: Relation) -> General | None:
        if not contains(relation, VALUES) or not reads_system_alone(relation) or is_larger(relation, _LARGE):
            return None
        general = with_lists(relation)
        # What it is written as: equal values may show differently.
        key = sha256(repr(general.relation).encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            return replace(general, relation=self._known.setdefault(key, general.relation))

    def get(self, relation: Relation) -> Plan:
        """The relation's plan."""
        return self._plans(relation)


def bare_view(relation: Relation) -> tuple[int, list[str]] | None:
    """(view, column names) of a relation that only picks columns of one continuous view; no engine is needed for it."""
    scan = relation.input if isinstance(relation, Project) else relation
    if not isinstance(scan, Scan) or scan.kind != "view":
        return None
    names = dict(zip(scan.columns, scan.sources, strict=True))
    outputs = relation.outputs if isinstance(relation, Project) else tuple((c, ColumnRef(c)) for c in scan.columns)
    wanted = [names[value.column] for _, value in outputs if isinstance(value, ColumnRef)]
    return (scan.oid, wanted) if len(wanted) == len(outputs) else None


def joined_scans(scans: Iterable[Scan]) -> tuple[Scan, ...]:
    """One scan for each relation, with all columns that some scan of it reads."""
    found: dict[int, Scan] = {}
    for scan in scans:
        found[scan.oid] = _joined(found.get(scan.oid, scan), scan)
    return tuple(found[oid] for oid in sorted(found))


def _joined(known: Scan, scan: Scan) -> Scan:
    """One scan with the columns of both."""
    columns = dict(zip(scan.sources, scan.columns, strict=True)) | dict(zip(known.sources, known.columns, strict=True))
    return Scan(scan.oid, scan.name, scan.kind, tuple(columns.values()), tuple(columns))
