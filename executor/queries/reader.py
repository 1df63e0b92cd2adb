"""Reading: one statement's rows at one LSN, from tables, continuous views and system views together.

Owns: how the continuous views in a query are brought to its LSN (architecture, section 2, step 5), which engine
answers, and the optimised form of queries seen before. ``executor/queries/moments`` has the LSN and the tables at it,
``executor/queries/view_reader`` the rows of one view, ``executor/core/spark_queries`` what Spark does of a query.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import PUBLIC
from catalog.roles import BOOTSTRAP_NAME
from catalog.system.rows import Own
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.descriptors import OF_FILES, require_left
from executor.core.plans import SCANS, Plan, bare_view, joined_scans, reads
from executor.core.spark_queries import SPARK_FAILED, Analytics, Leaf, SparkQuery, Stored, write_files, write_input
from executor.embedded.connection import Bindings, Evaluate, plainly
from executor.embedded.results import OpenRows
from executor.files import file_tables
from executor.files.followed_folders import OwnFiles
from executor.files.partition_pruning import FileReading, needed
from executor.maintained.maintained_views import MaintainedViews
from executor.printing.nodes import column_name, leaf_name
from executor.queries.client import Client
from executor.queries.engine_choice import Choice, choose
from executor.queries.moments import ATTEMPTS, PATIENT, Moment, Moments, Parameters
from executor.queries.present_rows import PresentRows
from executor.queries.stream_query import ArrivingQuery
from executor.queries.view_reader import LARGE, OVERFLOWED, TablesNeeded, ViewReader
from executor.remote_reads.home_tables import Borrowing
from executor.remote_reads.remote_views import Elsewhere
from executor.replicas.replica import Replicas
from executor.subscriptions.arrival_scan import ArrivalScan, Notify, Patience
from executor.subscriptions.feeds import ChangeFeeds
from executor.tables.store import ReadSnapshot
from executor.transactions.transaction import OutdatedError, Transaction
from executor.views.runtime import ViewPassed
from executor.views.view_lock import locked
from planner.algebra.nodes import Relation, Scan, Values
from planner.algebra.walk import find
from planner.bind.state.context import restricted
from planner.statements.statement import Output, Query, Statement
from planner.statements.walk import roots


class SeparableQueries(Protocol):
    """Queries that run pipeline by pipeline, and can leave their server in between."""

    def answer(
        self,
        reader: Reader,
        plan: Plan,
        parameters: Parameters,
        transaction: Transaction,
        outputs: tuple[Output, ...],
        /,
    ) -> pa.Table | None:
        """A query's rows from the embedded engine; None where it is to run whole."""
        ...

    def answer_on_spark(
        self,
        reader: Reader,
        plan: Plan,
        parameters: Parameters,
        transaction: Transaction,
        outputs: tuple[Output, ...],
        /,
    ) -> pa.Table | None:
        """A query's rows from Spark; None where it is to run whole."""
        ...

    def resume(self, reader: Reader, scan: Scan, /) -> pa.Table:
        """The rows of a query that has left its server."""
        ...


#: The rows of a system relation, by its oid, for a catalog, what the session knows of itself, and a search path.
SystemTable = Callable[[int, Catalog, Own, tuple[str, ...]], pa.Table]


class ReadServices(Struct, frozen=True):
    """What the readers of all sessions of a database read from."""

    core: Core
    replicas: Replicas
    borrowing: Borrowing
    elsewhere: Elsewhere
    changes: ChangeFeeds
    maintained: MaintainedViews
    analytics: Analytics
    separation: SeparableQueries
    system_table: SystemTable


class Reader:
    """One session's reading."""

    def __init__(self, services: ReadServices, is_cancelled: Callable[[], bool]) -> None:
        self.services, self.core = services, services.core
        self.time_zone = "UTC"
        #: The schemas that texts about the catalog do not name, as far as the role may use them.
        self.search_path: tuple[str, ...] = (PUBLIC,)
        self.user = BOOTSTRAP_NAME
        #: Where queries run: embedded, spark, or auto.
        self.query_engine = "auto"
        #: Whether its queries run pipeline by pipeline: auto, on or off.
        self.separable = "auto"
        #: Seconds between two copies of the state of those that do; 0 for none.
        self.checkpoint_interval = 0.0
        #: The client for which they run.
        self.client: Callable[[], Client] = Client
        self.is_cancelled = is_cancelled
        self.moments = Moments(self.core, services.borrowing, services.maintained.follows, self)
        self.views = ViewReader(self.core, services.maintained, lambda: self.client().time, self.bound)
        self.present = PresentRows(self)
        #: What the session knows of itself, as relations.
        self.own: Own = {}
        self._running: ReadSnapshot | None = None
        self._reading: OpenRows | None = None
        #: How queries of streams wait, and where they report their progress.
        self.patience = Patience()
        self.notify: Notify = lambda notice: None
        self._scan: ArrivalScan | None = None  # that runs now

    def batches(
        self, query: Query, parameters: Parameters, transaction: Transaction, evaluate: Evaluate = plainly
    ) -> Iterable[pa.RecordBatch]:
        """A query's rows, in order; those of a stream as they arrive."""
        query, parameters = self.core.plans.general(query, parameters)
        plan = self.core.plans.get(query.relation)
        if plan.arriving:
            arriving = ArrivingQuery(self, query, parameters, transaction)
            return arriving if arriving.is_live else list(arriving)
        try:
            few = self._few(plan, parameters, transaction) if evaluate is plainly else None
            if few is not None:
                return _batches(few)
            # An error that calls for another form of the query may come behind the first rows.
            opens = LARGE(query.relation) is None
            found = self._answer(query.relation, parameters, transaction, evaluate, None, query.outputs, opens)
            return self._read(found) if isinstance(found, OpenRows) else _batches(found)
        except SqlError as error:
            large = LARGE(query.relation) if error.sqlstate == OVERFLOWED else None
            if large is None or transaction.write is not None or transaction.snapshot is not None:
                raise  # an error has ended what the transaction reads by
            return _batches(self.table(large, parameters, transaction, evaluate))

    def _read(self, rows: OpenRows) -> Iterator[pa.RecordBatch]:
        """The rows of an open result, which ``cancel`` interrupts while one is waited for."""
        try:
            while True:
                self._reading = rows
                try:
                    batch = next(rows, None)
                finally:
                    self._reading = None
                if batch is None:
                    return
                yield batch
        finally:
            rows.close()

    def _few(self, plan: Plan, parameters: Parameters, transaction: Transaction) -> pa.Table | None:
        """The rows of a query that needs no engine: it picks columns of one continuous view, or reads a view of a few
        rows. None where an engine is to answer."""
        wanted, small = bare_view(plan.relation), plan.small
        if self.query_engine == "spark" or (wanted is None and (small is None or not plan.views)):
            return None
        if wanted is None and self.core.view(plan.views[0]).away is not None:  # it would be asked for twice
            return None

        def at(moment: Moment) -> pa.Table | None:
            if wanted is not None:
                return self.views.whole(wanted[0], moment).select(wanted[1])
            (oid,) = plan.views
            assert small is not None
            return small.run({small.leaf: self.views.read(plan, oid, moment, parameters)}, parameters)

        found: pa.Table | None = self.at_moment(plan, transaction, at, parameters)
        return found

    def choice(self, plan: Plan, parameters: Parameters) -> Choice:
        """Which engine answers a query, with what that took to tell: for one run of it."""
        analytics, files_of = self.services.analytics, self.files_of
        return choose(self.core, analytics, files_of, plan, parameters, self.query_engine, self.time_zone)

    def answer(
        self,
        relation: Relation,
        parameters: Parameters,
        transaction: Transaction,
        evaluate: Evaluate = plainly,
        choice: Choice | None = None,
        outputs: tuple[Output, ...] = (),
    ) -> pa.Table:
        """A query's rows as one table, from the engine that suits it. Spark takes none that ``evaluate`` means."""
        found = self._answer(relation, parameters, transaction, evaluate, choice, outputs, opens=False)
        assert isinstance(found, pa.Table)
        return found

    def _answer(
        self,
        relation: Relation,
        parameters: Parameters,
        transaction: Transaction,
        evaluate: Evaluate,
        choice: Choice | None,
        outputs: tuple[Output, ...],
        opens: bool,
    ) -> pa.Table | OpenRows:
        """Answers a plan; with ``opens``, many rows of the embedded engine are read while they are computed."""
        plan = self.core.plans.get(relation)
        choice = choice or self.choice(plan, parameters)
        if choice.engine == "embedded":
            in_steps = self.services.separation.answer if evaluate is plainly else None
            found = None if in_steps is None else in_steps(self, plan, parameters, transaction, outputs)
            if found is not None:
                return found
            if opens and evaluate is plainly:
                return self._open(plan, parameters, transaction)
            return self.table(relation, parameters, transaction, evaluate)
        try:
            return self._on_spark(plan, choice.query, parameters, transaction, outputs)
        except SqlError as error:
            if self.query_engine == "spark" or error.sqlstate not in SPARK_FAILED:
                raise
            return self.table(relation, parameters, transaction, evaluate)

    def _on_spark(
        self,
        plan: Plan,
        wanted: SparkQuery | None,
        parameters: Parameters,
        transaction: Transaction,
        outputs: tuple[Output, ...],
    ) -> pa.Table:
        """A query's rows from Spark, over the inputs of one moment; nothing is locked while it computes them."""
        analytics = self.services.analytics
        query = analytics.require(wanted)
        found = self.services.separation.answer_on_spark(self, plan, parameters, transaction, outputs)
        if found is not None:
            return found
        with analytics.job() as (number, folder):
            inputs = self.stored(plan, query.leaves, parameters, transaction, folder)
            return analytics.run(number, query, inputs, folder / "rows", self.is_cancelled)

    def stored(
        self, plan: Plan, leaves: tuple[Leaf, ...], parameters: Parameters, transaction: Transaction, folder: Path
    ) -> dict[str, Stored]:
        """The files of a query's inputs as they are at one moment; Spark reads a foreign table's own."""
        store = partial(self._store, plan, leaves, parameters, folder)
        found: dict[str, Stored] = self.at_moment(plan, transaction, store, parameters)
        return found

    def _store(
        self, plan: Plan, leaves: tuple[Leaf, ...], parameters: Parameters, folder: Path, moment: Moment
    ) -> dict[str, Stored]:
        bindings = self.bound(replace(plan, files=()), moment)
        readings = {reading.scan.oid: reading for reading in plan.files}
        stored: dict[str, Stored] = {}
        for leaf in leaves:
            if self.is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
            if leaf.scan.kind == "files":
                found = self.files_of(readings[leaf.scan.oid], moment.catalog, parameters)
                exact = file_tables.are_exact(found, leaf.scan.sources)
                stored[leaf.trace] = found if exact else tuple(write_files(found, leaf, folder, self.is_cancelled))
                continue
            table = moment.query(self.core.engine, leaf.rows, bindings, (), self.time_zone)
            stored[leaf.trace] = tuple(write_input(table.rename_columns(leaf.names), folder, leaf.trace))
        return stored

    def table(
        self, relation: Relation, parameters: Parameters, transaction: Transaction, evaluate: Evaluate = plainly
    ) -> pa.Table:
        """A relation's rows as one table, all of it at one moment, from the embedded engine."""
        plans = self.core.plans
        plan = plans.get(relation)
        if plan.arriving:
            schema = pa.schema([(column_name(column), column.type.arrow) for column in relation.columns])
            found = ArrivingQuery(self, Query(relation, ()), parameters, transaction)
            return pa.Table.from_batches(list(found), schema)

        def at(moment: Moment) -> pa.Table:
            bindings = self.bound(plan, moment, parameters)

            def run(part: Relation, more: Bindings) -> pa.Table:
                optimised = plan.relation if part is relation else plans.get(part).relation
                return self._computed(optimised, {**bindings, **more}, parameters, moment)

            return evaluate(relation, run)

        return self.at_moment(plan, transaction, at, parameters)

    def _open(self, plan: Plan, parameters: Parameters, transaction: Transaction) -> pa.Table | OpenRows:
        """A plan's rows at one moment, which lasts as long as they are read."""

        def at(moment: Moment) -> pa.Table | OpenRows:
            relation, engine, zone = plan.relation, self.core.engine, self.time_zone
            bindings = self.bound(plan, moment, parameters)
            if file_tables.folders(bindings):
                return engine.open(relation, self.with_tables(relation, bindings, moment), parameters, zone, self)
            reader = moment.writer or moment.snapshot
            if reader is not None:
                return reader.open(relation, bindings, parameters, zone)
            if plan.system and plan.needs_one_thread and plan.stays_few:
                compute = partial(engine.query, relation, bindings, parameters, zone, self, threads=1)
                kept = self.core.catalog_results.get if plan.immutable else None
                return compute() if kept is None else kept(relation, bindings, parameters, zone, compute)
            return engine.open(relation, bindings, parameters, zone, self, 1 if plan.needs_one_thread else None)

        found: pa.Table | OpenRows = self.at_moment(plan, transaction, at, parameters)
        return found

    def _computed(self, relation: Relation, bindings: Bindings, parameters: Parameters, moment: Moment) -> pa.Table:
        """A relation's rows. Where the engine reads files, an instance does that has no tables: it gets their rows."""
        engine = self.core.engine
        if not file_tables.folders(bindings):
            return moment.query(engine, relation, bindings, parameters, self.time_zone)
        return engine.query(relation, self.with_tables(relation, bindings, moment), parameters, self.time_zone, self)

    def with_tables(self, relation: Relation, bindings: Bindings, moment: Moment) -> Bindings:
        """What leaves stand for where an instance of the engine has no tables."""
        scans = joined_scans(scan for scan in find(relation, SCANS) if scan.kind == "table")
        query = partial(moment.query, self.core.engine, bindings={}, parameters=(), time_zone=self.time_zone)
        return {**bindings, **{leaf_name(scan): query(scan).rename_columns(scan.sources) for scan in scans}}

    def tables(self, relations: Sequence[Relation], transaction: Transaction) -> tuple[int, list[pa.Table]]:
        """The rows of several relations at one moment, and its LSN."""
        plan = Plan(Values((), ()), *reads(relations))

        def run(moment: Moment) -> tuple[int, list[pa.Table]]:
            bindings = self.bound(plan, moment)
            return moment.lsn, [self._computed(relation, bindings, (), moment) for relation in relations]

        found: tuple[int, list[pa.Table]] = self.at_moment(plan, transaction, run)
        return found

    def bindings(
        self, statement: Statement, transaction: Transaction, parameters: Parameters = ()
    ) -> dict[str, pa.Table]:
        """What the views and system views in a statement stand for, where it runs in the transaction's writer."""
        plan = Plan(Values((), ()), *reads(tuple(roots(statement))))
        if not (plan.views or plan.system or plan.files or plan.left or plan.histories):
            return {}
        transaction.writer()

        def at(moment: Moment) -> dict[str, pa.Table]:
            return self._views(plan, moment) | {
                leaf_name(reading.scan): file_tables.read(own, reading.scan.sources, self.is_cancelled)
                for reading, own in self._found(plan, moment.catalog, parameters)
            }

        found: dict[str, pa.Table] = self.at_moment(plan, transaction, at)
        return found

    def at_moment(
        self, plan: Plan, transaction: Transaction, run: Callable[[Moment], Any], parameters: Parameters = ()
    ) -> Any:
        """Runs at one moment; a later one is taken where another reader already brought a view beyond it, or where a
        view that another server maintains is not of that moment."""
        needs_tables = False
        for attempt in range(ATTEMPTS):
            self.services.replicas.refresh(plan.views)
            self.services.borrowing.fetch(plan.views, self)
            elsewhere = self.services.elsewhere.read(plan, parameters, self, transaction)
            with self.services.borrowing.steady(plan.views, self):
                moment, owned = self.moments.take(plan, transaction, elsewhere, needs_tables)
            moment = replace(moment, elsewhere=elsewhere, may_be_later=owned and attempt < PATIENT)
            try:
                below = self.core.views_locked(plan.views)
                with self.interruptible(moment.snapshot), locked(self.core.view(oid).lock for oid in below):
                    return run(moment)
            except SqlError as error:
                if error.sqlstate == "XX000" and self._is_outdated(plan):
                    raise OutdatedError from error
                raise
            except TablesNeeded:
                needs_tables = True
            except ViewPassed:
                if attempt + 1 == ATTEMPTS or not owned:
                    raise SqlError(
                        "40001", "could not serialize access: a view moved on during the statement"
                    ) from None
            finally:
                if owned and moment.snapshot is not None:
                    moment.snapshot.close_behind_rows()
                self.core.trace_budget.keep()
        raise AssertionError("unreachable")

    def _is_outdated(self, plan: Plan) -> bool:
        """Whether a table that the plan reads has been dropped, or has lost a column, since it was bound."""
        tables = self.core.tables.definitions
        scans = [scan for scan in find(plan.relation, SCANS) if scan.kind == "table"]
        known = {oid: {column.name for column in tables[oid].columns} for oid in plan.tables if oid in tables}
        return any(not known.get(scan.oid, set()).issuperset(scan.sources) for scan in scans)

    def bound(self, plan: Plan, moment: Moment, parameters: Parameters = ()) -> Bindings:
        """What leaves that are no tables stand for, by their engine names."""
        found = self._found(plan, moment.catalog, parameters)
        asked = {leaf_name(reading.scan): (own, reading.scan.sources) for reading, own in found}
        return self._views(plan, moment, parameters) | file_tables.rows(asked, self.is_cancelled)

    def _views(self, plan: Plan, moment: Moment, parameters: Parameters = ()) -> dict[str, pa.Table]:
        found = {f"v{oid}": self.views.read(plan, oid, moment, parameters) for oid in plan.views}
        found |= {leaf_name(scan): self.services.separation.resume(self, scan) for scan in plan.left}
        found |= {leaf_name(scan): self._history(scan, moment) for scan in plan.histories}
        catalog = moment.catalog
        path = catalog.usable(self.search_path, restricted(catalog, self.user))
        return found | {f"v{oid}": self.services.system_table(oid, catalog, self.own, path) for oid in plan.system}

    def _history(self, scan: Scan, moment: Moment) -> pa.Table:
        """The rows that are kept of a stream at a moment. Raises XX001."""
        stream = self.core.streams.get(scan.oid)
        if stream is None or stream.history is None:
            raise OutdatedError
        return stream.kept(moment.lsn, scan.sources)

    def _found(self, plan: Plan, catalog: Catalog, parameters: Parameters) -> Iterator[tuple[FileReading, OwnFiles]]:
        for reading in plan.files:
            yield reading, self.files_of(reading, catalog, parameters)

    def files_of(self, reading: FileReading, catalog: Catalog, parameters: Parameters = ()) -> OwnFiles:
        """The files of a foreign table that a plan has to read."""

        def evaluate(relation: Relation, leaf: str, values: pa.Table) -> pa.Table:
            return self.core.engine.query(relation, {leaf: values}, parameters, self.time_zone, self)

        table = file_tables.table_of(catalog, reading.scan)
        require_left(OF_FILES, f'read the files of foreign table "{table.name}"')
        found = file_tables.find(table)
        return needed(found, reading, evaluate)

    @contextlib.contextmanager
    def interruptible(self, snapshot: ReadSnapshot | None) -> Iterator[None]:
        """Within, ``cancel`` interrupts queries of a snapshot."""
        self._running = snapshot
        try:
            yield
        finally:
            self._running = None

    @contextlib.contextmanager
    def scanning(self, scan: ArrivalScan) -> Iterator[None]:
        """Within, ``cancel`` ends a scan of what arrives."""
        self._scan = scan
        try:
            yield
        finally:
            self._scan = None

    def cancel(self) -> None:
        """Interrupts what runs."""
        running, scan, reading = self._running, self._scan, self._reading
        if scan is not None:
            scan.cancel()
            return
        if running is not None:
            running.interrupt()
        if reading is not None:
            reading.interrupt()
        self.core.engine.interrupt(self)


class OwnReader(Reader):
    """The server's own reading, which another thread may cancel."""

    def __init__(self, services: ReadServices) -> None:
        self._cancelled = threading.Event()
        super().__init__(services, self._cancelled.is_set)

    def cancel(self) -> None:
        """Ends what it reads with 57014."""
        self._cancelled.set()
        super().cancel()


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = table.to_batches()
    return batches
