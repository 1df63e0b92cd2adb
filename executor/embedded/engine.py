"""The embedded engine: programs' statements and queries over Arrow, on DuckDB.

Owns: running a job's statements, merging runs by a state's key, and queries over bound leaves. Tables belong to
``executor.tables``, SQL to the printer, and connections to ``connection``.

    merge, aggregate state   SELECT key, merge(column) ... FROM all runs GROUP BY key
    merge, distinct state    SELECT DISTINCT
    merge, concatenate       the runs one after the other, without the engine
    a handful of rows        executor.small, without the engine: merges, and statements that group
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.embedded.connection import NOTHING, Bindings, Connection, Parameters
from executor.embedded.instance import Instance
from executor.embedded.pipeline_results import KeptResults
from executor.embedded.printing.dialect import DuckPrinter
from executor.embedded.results import OpenRows
from executor.embedded.static_semijoin import Reduction, reductions_of
from executor.engine import Inputs, Job, JobResult
from executor.files.file_tables import FileRows, folders
from executor.identity_cache import Remembered
from executor.printing.nodes import column_name, leaf_name
from executor.small import Grouping, Merge, grouping_of, merge_of
from planner.algebra.nodes import Aggregate, Delta, Project, Relation
from planner.algebra.walk import walk
from planner.incremental.programs.program import State, Statement
from planner.incremental.programs.row_failures import forgives_errors
from planner.incremental.programs.state_relations import RUNS, merged
from planner.placement import Power

_MERGES: Final = 512
#: The most folders with an instance of their own.
_FOLDERS: Final = 8
#: The most rows of inputs for an instance with one thread: waking another thread costs more than it saves.
FEW_ROWS: Final = 8192


class Merging(Struct, frozen=True):
    """Merges a state's runs: a relation, and for few rows, if possible, a merge in Python."""

    state: State
    schema: pa.Schema
    relation: Relation
    small: Merge | None


class Reading(Struct, frozen=True):
    """What a job's statement reads, determined once: the oids of its deltas by engine names; the static inputs of which
    few delta rows need only a part; whether its rows are unique by the key of the target state; how numpy computes it
    over few rows, if it can; and whether its expressions may fail."""

    statement: Statement
    state: State
    deltas: Mapping[str, int]
    reductions: tuple[Reduction, ...]
    unique: bool
    small: Grouping | None
    forgives: bool


class EmbeddedEngine:
    """DuckDB in this process. Threads may call it concurrently."""

    name = "embedded"

    def __init__(self, threads: int = 0, spill: Path | None = None, memory: int = 0) -> None:
        """``threads`` is the number of threads of one statement; 0 is one per core. ``spill`` is the folder for data
        that exceeds ``memory`` bytes, the limit of each instance; 0 is DuckDB's default."""
        self._threads = threads
        self._spill = spill
        self._memory = memory
        #: Instances without files, by the number of their threads: creating an instance takes a twentieth of a second.
        self._by_threads: dict[int, Instance] = {}
        #: Instances that read files, by the folder to which they are restricted.
        self._of_files: OrderedDict[str, Instance] = OrderedDict()
        #: How a state's runs are merged: one object per state, so that its plan stays prepared.
        self._merging: Remembered[State, Merging] = Remembered(_merging_of, _MERGES)
        self._readings: OrderedDict[int, Reading] = OrderedDict()
        self._lock = Lock()
        #: The instance for relations that forgive errors, created on first use.
        self._forgiving: Instance | None = None
        #: Held while an instance is created; callers that need another instance do not wait.
        self._making = Lock()

    def close(self) -> None:
        """Closes the engine; except for ``prepare``, nothing may be running."""
        with self._making:
            for database in self._instances():
                database.close()

    @cached_property
    def power(self) -> Power:
        """The threads and memory of a query."""
        return self._instance().power()

    def _instances(self) -> list[Instance]:
        with self._lock:
            forgiving = () if self._forgiving is None else (self._forgiving,)
            return [*self._by_threads.values(), *self._of_files.values(), *forgiving]

    def _instance(self, threads: int | None = None) -> Instance:
        """The instance with this number of threads, or with the most that a statement may use; created on first use."""
        wanted = self._threads if threads is None else threads
        known = self._by_threads.get(wanted)
        if known is not None:
            return known
        with self._making:
            if wanted not in self._by_threads:
                made = Instance(wanted, spill=self._spill, memory=self._memory)
                with self._lock:
                    self._by_threads[wanted] = made
            return self._by_threads[wanted]

    def prepare(self) -> None:
        """Creates the instances that ``query_few`` may need, before the first call."""
        self._instance()
        self._instance(1)

    def _forgiving_instance(self) -> Instance:
        with self._making:
            if self._forgiving is None:
                made = Instance(self._threads, spill=self._spill, memory=self._memory, forgives=True)
                with self._lock:
                    self._forgiving = made
            return self._forgiving

    def _suited(self, bindings: Bindings) -> Instance:
        """The instance for inputs with this number of rows."""
        rows = sum(FEW_ROWS if isinstance(found, FileRows) else found.num_rows for found in bindings.values())
        return self._instance(1 if rows < FEW_ROWS else None)

    def give_back(self) -> None:
        """Returns freed memory to the system."""
        for database in self._instances()[:1]:  # all instances share one allocator
            database.give_back()

    def interrupt(self, owner: object = None) -> None:
        """Makes the queries of this owner raise 57014; without an owner, all queries."""
        for database in self._instances():
            database.interrupt(owner)

    # Queries ----------------------------------------------------------------------------------------------------

    def query(
        self,
        relation: Relation,
        bindings: Bindings,
        parameters: Parameters = (),
        timezone: str = "UTC",
        owner: object = None,
        threads: int | None = None,
    ) -> pa.Table:
        """A relation's rows over leaves bound by their engine names; columns c<id>, in exactly their Arrow types.
        ``threads`` chooses the instance, unless files are read."""
        if not folders(bindings):
            return self._query(self._instance(threads), relation, bindings, parameters, timezone, owner)
        with (
            self.connection(owner, bindings) as connection,
            closing(KeptResults(connection, bindings, timezone)) as inputs,
        ):
            inputs.load(relation)
            return connection.query(relation, inputs.left, parameters, timezone)

    def open(
        self,
        relation: Relation,
        bindings: Bindings,
        parameters: Parameters = (),
        timezone: str = "UTC",
        owner: object = None,
        threads: int | None = None,
    ) -> pa.Table | OpenRows:
        """The rows of ``query``: a table if they are few, else an open result, which is computed while it is read.
        ``threads`` chooses the instance, unless files are read."""
        with ExitStack() as stack:
            connection = stack.enter_context(self.connection(owner, bindings, threads))
            if folders(bindings):
                inputs = stack.enter_context(closing(KeptResults(connection, bindings, timezone)))
                inputs.load(relation)
                bindings = inputs.left
            found = connection.open(relation, bindings, parameters, timezone)
            if isinstance(found, OpenRows):
                found.at_end(stack.pop_all().close)
            return found

    def _of_folder(self, folder: str, owner: object) -> tuple[Instance, Connection]:
        """A connection of the instance that may read files of one folder only; some idle instances are kept."""
        with self._lock:
            if folder not in self._of_files:
                idle = [name for name, found in self._of_files.items() if found.is_idle()]
                for old in idle[: max(0, len(self._of_files) + 1 - _FOLDERS)]:
                    self._of_files.pop(old).close()
                self._of_files[folder] = Instance(
                    self._threads, folders=(folder,), spill=self._spill, memory=self._memory
                )
            self._of_files.move_to_end(folder)
            return self._of_files[folder], self._of_files[folder].acquire(owner)

    @contextmanager
    def connection(
        self, owner: object, bindings: Bindings = NOTHING, threads: int | None = None
    ) -> Iterator[Connection]:
        """A connection for several statements, to an instance without tables that may read the bound files."""
        of_files = folders(bindings)
        if of_files:
            database, connection = self._of_folder(os.path.commonpath(of_files), owner)
        else:
            database = self._instance(threads)
            connection = database.acquire(owner)
        try:
            yield connection
        finally:
            database.release(connection)

    def query_few(
        self,
        relation: Relation,
        bindings: Bindings,
        timezone: str = "UTC",
        owner: object = None,
        parameters: Parameters = (),
    ) -> pa.Table:
        """The rows of a relation that makes few rows from few: for small inputs, no other thread is woken."""
        return self._query(self._suited(bindings), relation, bindings, parameters, timezone, owner)

    def query_forgiving(self, relation: Relation, bindings: Bindings, timezone: str = "UTC") -> pa.Table:
        """The rows of a relation with expressions that may fail (``row_failures``)."""
        return self._query(self._forgiving_instance(), relation, bindings, (), timezone, None)

    def _query(
        self,
        database: Instance,
        relation: Relation,
        bindings: Bindings,
        parameters: Parameters,
        timezone: str,
        owner: object,
    ) -> pa.Table:
        connection = database.acquire(owner)
        try:
            return connection.query(relation, bindings, parameters, timezone)
        finally:
            database.release(connection)

    # Programs ---------------------------------------------------------------------------------------------------

    def supports(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> str | None:
        """None for every statement that can be printed: a printed statement is computed exactly."""
        for statement in statements:
            try:
                DuckPrinter().print_relation(statement.relation)
            except SqlError as error:
                return error.message
        return None

    def run(self, job: Job) -> JobResult:
        """Runs one job completely or not at all. Returns runs by state name, merged by key, with the state's columns
        c<id>."""
        started = time.perf_counter()
        states = {state.name: state for state in job.states}
        found: dict[str, list[pa.Table]] = {}
        unique: set[str] = set()
        for statement in job.statements:
            state = states[statement.target]
            reading = self._reading(statement, state)
            run = self._run(job, reading)
            if statement.target not in found and reading.unique:
                unique.add(statement.target)
            found.setdefault(statement.target, []).append(_renamed(run, self._merging(state).schema))
        runs = {
            name: tables[0] if len(tables) == 1 and name in unique else self.merge(states[name], tables)
            for name, tables in found.items()
        }
        rows = sum(_table(delta).num_rows for delta in job.inputs.deltas.values())
        return JobResult(runs, rows, time.perf_counter() - started)

    def _run(self, job: Job, reading: Reading) -> pa.Table:
        """A statement's rows."""
        small = reading.small
        run = None if small is None else small.run(_table(job.inputs.deltas[small.oid]))
        if run is not None:
            return run
        leaves = _leaves(job.inputs, reading)
        relation = reading.statement.relation
        database = self._forgiving_instance() if reading.forgives else self._suited(leaves)
        return self._query(database, relation, leaves, (), job.timezone, job)

    def merge(self, state: State, tables: Sequence[pa.Table]) -> pa.Table:
        """The tables' rows merged by the state's key, in the tables' order; column names are the first table's."""
        merging = self._merging(state)
        if not tables:
            return merging.schema.empty_table()
        names = tables[0].column_names
        renamed = [_renamed(table, merging.schema) for table in tables]
        merged = None if merging.small is None else merging.small.run(renamed)
        if merged is None:
            merged = pa.concat_tables(renamed)
            if state.kind != "concatenate" and merged.num_rows:
                merged = self.query_few(merging.relation, {f"s_{RUNS}": merged})
        return merged if merged.column_names == names else merged.rename_columns(names)

    def _reading(self, statement: Statement, state: State) -> Reading:
        """The reading of a statement, kept by its identity."""
        with self._lock:
            known = self._readings.get(id(statement))
            if known is None or known.state is not state:
                deltas = {leaf_name(item): item.oid for item in walk(statement.relation) if isinstance(item, Delta)}
                unique = _groups_by(statement.relation, state)
                relation = statement.relation
                small, reductions = grouping_of(relation), reductions_of(relation)
                forgives = forgives_errors(relation)
                known = Reading(statement, state, deltas, reductions, unique, small, forgives)
                self._readings[id(statement)] = known
                if len(self._readings) > _MERGES:
                    self._readings.popitem(last=False)
            return known


def _merging_of(state: State) -> Merging:
    return Merging(state, _schema(state), merged(state), merge_of(state))


def _schema(state: State) -> pa.Schema:
    return pa.schema([pa.field(column_name(column), column.type.arrow) for column in state.columns])


def _renamed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table under a state's column names and types, position by position."""
    if table.schema.equals(schema):
        return table
    table = table.rename_columns(schema.names)
    return table if table.schema.equals(schema) else table.cast(schema)


def _leaves(inputs: Inputs, reading: Reading) -> Mapping[str, pa.Table]:
    """The engine names of the leaves that a statement may read."""
    found: dict[str, pa.Table] = {}
    for name, table in inputs.traces.items():
        found[f"s_{name}"] = _table(table)
    for item in reading.reductions:
        delta = _table(inputs.deltas[item.oid])
        if delta.num_rows <= FEW_ROWS and item.leaf in found:
            found[item.leaf] = item.reduced(found[item.leaf], delta)
    return found | {name: _table(inputs.deltas[oid]) for name, oid in reading.deltas.items()}


def _table(rows: object) -> pa.Table:
    assert isinstance(rows, pa.Table), "the embedded engine reads tables"
    return rows


def _groups_by(relation: Relation, state: State) -> bool:
    """Whether the relation already yields each key of the state once."""
    while isinstance(relation, Project):
        relation = relation.input
    return state.kind == "concatenate" or (isinstance(relation, Aggregate) and len(relation.keys) == len(state.key))
