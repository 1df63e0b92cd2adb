"""The database's interface to separable queries: running one in steps, taking its state out, and continuing one.

Owns: the content of an artifact. The rows of tables and views that the rest of the query reads are stored with it as
runs, as of the query's snapshot, since the snapshot is not kept and another server lacks the tables. So a query that
has left needs only its folder.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.type_mapping import numbered
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import SqlType
from executor.cluster.claims import Claims
from executor.core.core import Core
from executor.core.spark_queries import SPARK_FAILED, Analytics, leaves_of
from executor.embedded.connection import NOTHING, Bindings, Connection
from executor.embedded.pipeline_results import KeptResults
from executor.failpoints import failpoint
from executor.files.file_tables import FileRows, folders
from executor.printing.nodes import column_name, leaf_name
from executor.queries.client import Client
from executor.separation.enum_values import own_values
from executor.separation.forecasts import Forecasting
from executor.separation.query_artifact import Run, SeparatedQueries, SeparatedQuery
from executor.separation.query_moves import Moving, MovingViews
from executor.separation.results import EngineName, Results
from executor.separation.running_queries import Request, RunningQueries, RunningQuery, Wish
from executor.separation.shared_files import shared_apart, shared_of
from executor.separation.spark_results import SparkResults
from executor.separation.step_runner import Moved, NotInSteps, Stepwise
from executor.separation.steps import KnownSteps, RowCounts, Steps, steps_of, steps_of_rest
from planner.algebra.nodes import Relation, Scan, Snapshot, Value
from planner.algebra.walk import walk
from planner.separation.inputs import inputs_apart
from planner.statements.statement import Output

if TYPE_CHECKING:
    from executor.core.plans import Plan
    from executor.queries.moments import Moment
    from executor.queries.reader import OwnReader, Reader
    from executor.transactions.transaction import Transaction

FOLDER: Final = "queries"
#: The name of a finished query's rows.
_ROWS: Final = "rows"


class Separation:
    """One server's separable queries."""

    def __init__(
        self,
        core: Core,
        analytics: Analytics,
        reader: Callable[[], OwnReader],
        views: MovingViews,
    ) -> None:
        """``reader`` creates a reader of this server, ``views`` are the views that leave a server being drained."""
        self._core = core
        self._analytics = analytics
        self.counts = RowCounts(core.tables)
        self.known = KnownSteps(lambda: core.tables_lsn)
        self.running = RunningQueries()
        self.claims = Claims(core.shared, core.registry)
        self.stored = SeparatedQueries(core.shared.folder / FOLDER, self.claims)
        self.claims.drop_void()
        self.stored.drop_orphans()
        self.moving = Moving(core, self, reader, views)

    # Running ----------------------------------------------------------------------------------------------------

    def steps(
        self,
        reader: Reader,
        plan: Plan,
        parameters: tuple[Value, ...],
        transaction: Transaction,
        engine: EngineName = "embedded",
    ) -> Steps:
        """How a session's query runs on an engine: whole, or pipeline by pipeline."""
        return steps_of(reader, self.counts, self.known, plan, parameters, transaction, engine)

    def answer(
        self,
        reader: Reader,
        plan: Plan,
        parameters: tuple[Value, ...],
        transaction: Transaction,
        outputs: tuple[Output, ...],
    ) -> pa.Table | None:
        """A query's rows, computed pipeline by pipeline; None if it must run whole, also to report its own error."""
        steps = self.steps(reader, plan, parameters, transaction)
        if steps.plan is None:
            return None

        def run(moment: Moment) -> pa.Table:
            return self._run(reader, steps, outputs, reader.bound(plan, moment, parameters), moment)

        return self._here_or_there(reader, lambda: reader.at_moment(plan, transaction, run, parameters))

    def _here_or_there(self, reader: Reader, run: Callable[[], pa.Table]) -> pa.Table | None:
        """The rows of a query that runs in steps, on whichever server it ends; None if it must run whole."""
        try:
            return run()
        except Moved as moved:
            return self._back(reader, moved.query_id)
        except NotInSteps:
            return None

    def _back(self, reader: Reader, query_id: str) -> pa.Table:
        """The rows of a query that has migrated. Its artifact is deleted, unless its client has gone."""
        is_ended = False
        try:
            found = self.moving.rows(reader, query_id)
            is_ended = True
        finally:
            if is_ended or (reader.is_cancelled() and not reader.client().is_gone):
                with contextlib.suppress(SqlError):
                    self.stored.delete(query_id)
        return found

    def answer_on_spark(
        self,
        reader: Reader,
        plan: Plan,
        parameters: tuple[Value, ...],
        transaction: Transaction,
        outputs: tuple[Output, ...],
    ) -> pa.Table | None:
        """Answers on Spark, over inputs in files."""
        steps = self.steps(reader, plan, parameters, transaction, "spark")
        if steps.plan is None:
            return None
        analytics, pipelined = self._analytics, steps.plan
        query, about = self._begun(reader, steps, outputs, "spark")
        forecasting = Forecasting(self._core, pipelined, steps.efforts, steps.speed)

        def run() -> pa.Table:
            with self._alone(query), analytics.job() as job:
                inputs = reader.stored(plan, leaves_of(pipelined.whole), parameters, transaction, job[1])
                results = SparkResults(analytics, job, inputs, reader.time_zone, reader.is_cancelled)
                extract = self._extractor(about, dict)
                found = Stepwise(pipelined, steps.slices, query, results, extract, forecasting).run()
                self._ended(reader, query)
                return found

        return self._here_or_there(reader, run)

    def _begun(
        self, reader: Reader, steps: Steps, outputs: tuple[Output, ...], engine: EngineName
    ) -> tuple[RunningQuery, dict[str, Any]]:
        """A query before it runs, and the description for its artifact."""
        assert steps.plan is not None
        client = reader.client()
        query = RunningQuery(client, steps.plan.names, steps.efforts, interval=reader.checkpoint_interval)
        about: dict[str, Any] = {"role": client.role, "text": client.text, "time_zone": reader.time_zone}
        return query, about | {"outputs": outputs or _outputs(steps.plan.whole), "engine": engine}

    def _ended(self, reader: Reader, query: RunningQuery) -> None:
        """Deletes the copies of a finished query's state. If another server has taken the query over, they belong to
        that server."""
        if self.claims.holds(query.id):
            with contextlib.suppress(SqlError):
                self.stored.delete(query.id)
        _tell(reader, query)

    def _run(
        self, reader: Reader, steps: Steps, outputs: tuple[Output, ...], bindings: Bindings, moment: Moment
    ) -> pa.Table:
        assert steps.plan is not None
        query, about = self._begun(reader, steps, outputs, "embedded")
        if folders(bindings):
            bindings = reader.with_tables(steps.plan.whole, bindings, moment)
        with self._alone(query), self._connection(reader, moment, bindings) as connection:
            texts = steps.texts.setdefault(reader.time_zone, {})
            results = KeptResults(connection, bindings, reader.time_zone, texts, steps.counts)
            forecasting = Forecasting(self._core, steps.plan, steps.efforts, steps.speed)
            extract = self._extractor(about, dict, bindings)
            with contextlib.closing(results):
                if folders(bindings):
                    results.load(steps.plan.whole)
                found = Stepwise(steps.plan, steps.slices, query, results, extract, forecasting).run()
            self._ended(reader, query)
        return found

    @contextlib.contextmanager
    def _alone(self, query: RunningQuery) -> Iterator[None]:
        """Runs a query on this server only; its claim is released afterwards. Raises 55006."""
        with self.running.during(query):
            try:
                yield
            finally:
                with contextlib.suppress(SqlError):  # a claim that cannot be released becomes void
                    self.claims.release(query.id)

    @contextlib.contextmanager
    def _connection(self, reader: Reader, moment: Moment, bindings: Bindings) -> Iterator[Connection]:
        if moment.snapshot is not None and not folders(bindings):
            yield moment.snapshot.connection
            return
        with self._core.engine.connection(reader, bindings) as connection:
            yield connection

    # Leaving ----------------------------------------------------------------------------------------------------

    def ask_for(
        self, client: Client, wish: Wish, query_id: str, is_cancelled: Callable[[], bool], target: str = ""
    ) -> str | None:
        """Sends a request (``ask``) to a query that runs here, also one of another server's session. Raises 42501, and
        55000 for a query that cannot be suspended because a session of another server waits for it."""
        self._require_target(wish, target)
        query = self.running.get(query_id)
        if query is None:
            hint = "millstream.queries shows on which server it runs."
            raise SqlError("55000", f'query "{query_id}" does not run on this server', hint=hint)
        if client.role != query.client.role and not self._is_superuser(client):
            raise SqlError("42501", f'must be owner of query "{query_id}"')
        if wish == "suspend" and not query.client.process:
            hint = "Migrate it back, and suspend it by the process number of that session."
            raise SqlError("55000", f'a session of another server waits for query "{query_id}"', hint=hint)
        return query.id if query.ask(wish, target).wait(is_cancelled) else None

    def ask(self, wish: Wish, process: int, is_cancelled: Callable[[], bool], target: str = "") -> str | None:
        """Takes the state of a session's query to storage after the running pipeline; with a target, the query migrates
        there.

        Returns the query's id, None if the query ended first. Raises 55000 if no query of the session runs in steps or
        the target accepts none, and 42704.
        """
        self._require_target(wish, target)
        query = self.running.of_process(process)
        if query is None:
            hint = "millstream.queries lists the queries that can leave; SET separable = on allows all with pipelines."
            raise SqlError("55000", f"process {process} runs no query that can leave its server", hint=hint)
        return query.id if query.ask(wish, target).wait(is_cancelled) else None

    def _require_target(self, wish: Wish, target: str) -> None:
        if wish == "migrate":
            self._core.registry.require_target(target)

    def _extractor(
        self,
        about: Mapping[str, Any],
        bound: Callable[[], Mapping[str, Run]],
        bindings: Bindings = NOTHING,
        used: Collection[Path] = (),
    ) -> Callable[..., None]:
        """A function that writes a query's artifact.

        ``bound`` gives runs that the query has had from the beginning, ``bindings`` are the rows of leaves other than
        tables, and ``used`` the files that it came with and still reads.
        """

        def extract(
            query: RunningQuery, left: Relation, state: Mapping[str, Snapshot], results: Results, request: Request
        ) -> None:
            left, files = shared_apart(left, shared_of(self._core.options, bindings))
            relation, inputs = inputs_apart(left, files)
            read = {item.trace for item in walk(relation) if isinstance(item, Snapshot)}
            parts = {name: part for name, part in {**state, **dict(inputs)}.items() if name in read}
            # The name of a run that is not read any more may belong to another run.
            unread = read - parts.keys() - files.keys()
            runs = {name: Run(_columns(part), partial(results.batches, part)) for name, part in parts.items()}
            runs |= {name: run for name, run in bound().items() if name in unread}
            if not self.claims.holds(query.id):
                self.claims.take(query.id)
            failpoint("claimed")
            more = {"finished": query.finished, "way": request.words, "files": tuple(files.items())}
            kind = "suspended" if request.wish == "suspend" else "checkpoint"
            self._write(query, runs, about, state=kind, relation=relation, used=used, **more)
            query.copied = dt.datetime.now(dt.UTC)
            if request.wish == "migrate":
                self.claims.give(query.id, request.target)
                failpoint("given")

        return extract

    def _write(self, query: RunningQuery, runs: Mapping[str, Run], about: Mapping[str, Any], **more: Any) -> None:
        about = {"asked": self._asked(about["role"]), **about, "server": self._core.registry.name}
        now = dt.datetime.now(dt.UTC)
        self.stored.write(query.id, runs, created=now, pipelines=len(query.names), **about, **more)

    def _asked(self, role: str) -> tuple[str, int]:
        """The server of which a query was asked, from which it now leaves, and the oid of the role there."""
        own = self._core.catalog.roles.find(role)
        return self._core.registry.identity, 0 if own is None else own.oid

    # Going on ---------------------------------------------------------------------------------------------------

    def columns(self, query_id: str) -> tuple[tuple[Output, SqlType], ...]:
        """The columns of a separated query's rows, and the types in which they are computed. Raises 42704, XX001."""
        query = self.stored.get(query_id)
        pairs = zip(query.outputs, _types(query.relation), strict=True)
        if self._is_own(query):
            return tuple(pairs)
        return tuple((replace(item, type=numbered(item.type)), numbered(kind)) for item, kind in pairs)

    def _is_own(self, query: SeparatedQuery) -> bool:
        """Whether this server was asked, if that is known."""
        return query.asked[0] in ("", self._core.registry.identity)

    def resume(self, reader: Reader, scan: Scan) -> pa.Table:
        """The rows of a separated query, in the order of its columns. Raises 42501, 42704, 55006, XX001."""
        query = self.stored.get(scan.name)
        self._require_owner(reader.client(), query)
        rows = self.rest(reader, query)
        kinds = _types(query.relation)
        columns = [
            own_values(rows.column(place), kinds[place], column.type)
            for place, column in zip(map(int, scan.sources), scan.columns, strict=True)
        ]
        if [column.type for column in columns] != [column.type.arrow for column in scan.columns]:
            raise SqlError("XX001", f'separated query "{query.id}" has other columns than before')
        return pa.Table.from_arrays(columns, names=list(scan.sources)) if columns else rows

    def rest(self, reader: Reader, query: SeparatedQuery) -> pa.Table:
        """The rows of the rest of a query, computed here unless it migrates. Raises 55006, XX001."""
        try:
            return self.go_on(reader, query)
        except Moved as moved:
            return self.moving.rows(reader, moved.query_id)

    def go_on(self, reader: Reader, query: SeparatedQuery, keep: bool = False) -> pa.Table:
        """Continues the query on this server. ``keep``: its rows stay on storage as its final state. Raises 55006,
        XX001, and Moved."""
        if query.state == "finished":
            return self._kept_rows(query)
        engine = self._engine(reader, query)
        steps = _steps(reader, query, engine)
        assert steps.plan is not None
        running = RunningQuery(reader.client(), steps.plan.names, steps.efforts, query.id, reader.checkpoint_interval)
        with self._alone(running):
            self.claims.take(query.id)
            failpoint("begun")
            found = (self._on_spark if engine == "spark" else self._embedded)(reader, query, steps, running)
            if keep:
                self._keep(running, query, found)
            return found

    def _engine(self, reader: Reader, query: SeparatedQuery) -> EngineName:
        """The engine for the rest of a query: the requested one; else the one on which it ran, if that engine is
        available and can compute it."""
        if reader.query_engine != "auto":
            return "spark" if reader.query_engine == "spark" else "embedded"
        analytics = self._analytics
        if query.engine == "embedded" or query.files or analytics.unready() is not None:
            return "embedded"
        wanted = analytics.query(query.relation, (), {}, query.time_zone)
        return "embedded" if wanted is None or isinstance(wanted.printed, str) else "spark"

    def _embedded(self, reader: Reader, query: SeparatedQuery, steps: Steps, running: RunningQuery) -> pa.Table:
        assert steps.plan is not None
        engine = self._core.engine
        tables = self.stored.tables(query)
        inputs: dict[str, pa.Table | FileRows] = {**tables}
        inputs |= {name: files.read(self._core.options, query.id) for name, files in query.files}
        bindings = {leaf_name(Snapshot(name, (), ())): rows for name, rows in inputs.items()}
        extract = self._extractor(_about(query, "embedded"), lambda: _runs(query, tables), bindings)
        forecasting = self._forecasting(query, steps)
        with engine.connection(reader, bindings) as connection:
            results = KeptResults(connection, bindings, query.time_zone)
            with contextlib.closing(results), contextlib.suppress(NotInSteps):
                results.load(query.relation)
                return Stepwise(steps.plan, steps.slices, running, results, extract, forecasting).run()
        try:
            return engine.query(query.relation, bindings, (), query.time_zone, reader)
        except SqlError as error:
            if error.sqlstate != "XX000":
                raise
            message = f'separated query "{query.id}" cannot be computed by the engine: {error.message}'
            raise SqlError("XX001", message) from error

    def _on_spark(self, reader: Reader, query: SeparatedQuery, steps: Steps, running: RunningQuery) -> pa.Table:
        """Runs the query on Spark over its own files, or on the embedded engine if Spark fails and was not requested.
        Raises 0A000 if Spark cannot compute it."""
        try:
            return self._only_on_spark(reader, query, steps, running)
        except SqlError as error:
            if reader.query_engine == "spark" or error.sqlstate not in SPARK_FAILED:
                raise
        steps = _steps(reader, query, "embedded")
        assert steps.plan is not None
        running.begin_anew(steps.plan.names, steps.efforts)
        return self._embedded(reader, query, steps, running)

    def _only_on_spark(self, reader: Reader, query: SeparatedQuery, steps: Steps, running: RunningQuery) -> pa.Table:
        assert steps.plan is not None
        if query.files:
            raise unsupported("continuing a query that reads shared files on Spark", "SET query_engine = 'embedded'.")
        analytics = self._analytics
        inputs = {name: (path,) for name, path in self.stored.paths(query).items()}
        used = [path for (path,) in inputs.values()]
        about = _about(query, "spark")
        extract = self._extractor(about, lambda: _runs(query, self.stored.tables(query)), used=used)
        forecasting = self._forecasting(query, steps)
        with analytics.job() as job:
            results = SparkResults(analytics, job, inputs, query.time_zone, reader.is_cancelled)
            with contextlib.suppress(NotInSteps):
                return Stepwise(steps.plan, steps.slices, running, results, extract, forecasting).run()
            return results.rows(query.relation)

    def _forecasting(self, query: SeparatedQuery, steps: Steps) -> Forecasting:
        assert steps.plan is not None
        return Forecasting(self._core, steps.plan, steps.efforts, steps.speed, query.runs, dict(query.files))

    def _keep(self, running: RunningQuery, query: SeparatedQuery, rows: pa.Table) -> None:
        result = Snapshot(_ROWS, query.relation.columns, tuple(rows.column_names))
        columns = tuple(zip(rows.column_names, _types(query.relation), strict=True))
        runs = {_ROWS: Run(columns, rows.to_batches)}
        finished = {"state": "finished", "finished": len(running.names), "way": query.way}
        self._write(running, runs, _about(query, query.engine), relation=result, **finished)

    def _kept_rows(self, query: SeparatedQuery) -> pa.Table:
        if not isinstance(query.relation, Snapshot):
            raise SqlError("XX001", f'separated query "{query.id}" has no finished result, but its manifest says so')
        return self.stored.tables(query)[query.relation.trace].select(query.relation.sources)

    def forget(self, client: Client, query_id: str) -> bool:
        """Deletes a separated query; returns whether there was one. Raises 42501, and XX001 for a query with an unknown
        owner, which only a superuser may delete."""
        try:
            self._require_owner(client, self.stored.get(query_id))
        except SqlError as error:
            if error.sqlstate == "42704":
                return False
            if error.sqlstate == "42501" or not self._is_superuser(client):
                raise
        return self.stored.delete(query_id)

    def _require_owner(self, client: Client, query: SeparatedQuery) -> None:
        """Raises 42501 if the query belongs to another role."""
        if client.role != self.role_of(query) and not self._is_superuser(client):
            raise SqlError("42501", f'must be owner of separated query "{query.id}"')

    def role_of(self, query: SeparatedQuery) -> str | None:
        """The name of a query's owner: on another server than the one that was asked, the name there; None if the role
        is gone, even if another role has its name now."""
        _, oid = query.asked
        if not oid or not self._is_own(query):
            return query.role
        found = self._core.catalog.roles.get(oid)
        return None if found is None else found.name

    def _is_superuser(self, client: Client) -> bool:
        roles = self._core.catalog.roles
        own = roles.find(client.role)
        return own is not None and roles.is_superuser(own.oid)


def _steps(reader: Reader, query: SeparatedQuery, engine: EngineName) -> Steps:
    """How the rest of a query runs on an engine."""
    rows = {name: run.rows for name, run in query.runs.items()} | {name: item.rows for name, item in query.files}
    return steps_of_rest(reader, query.relation, rows, engine)


def _about(query: SeparatedQuery, engine: EngineName) -> dict[str, Any]:
    """The description that stays the same in the artifact when the query leaves again, with the engine on which it runs
    now."""
    kept = {name: getattr(query, name) for name in ("role", "asked", "text", "time_zone", "outputs")}
    return kept | {"engine": engine}


def _runs(query: SeparatedQuery, tables: Mapping[str, pa.Table]) -> dict[str, Run]:
    """The runs stored with a query."""
    return {name: Run(query.runs[name].columns, table.to_batches) for name, table in tables.items()}


def _tell(reader: Reader, query: RunningQuery) -> None:
    """Warns about copies of a query's state that were due and could not be made."""
    error = query.copy_error
    if error is not None:
        reader.notify(SqlError("01000", f'query "{query.id}" ran without a checkpoint: {error.message}'))


def _outputs(relation: Relation) -> tuple[Output, ...]:
    """Descriptions of a query's columns by their names and types only."""
    return tuple(Output(column.name, column.type) for column in relation.columns)


def _columns(relation: Relation) -> tuple[tuple[str, SqlType], ...]:
    return tuple((column_name(column), column.type) for column in relation.columns)


def _types(relation: Relation) -> tuple[SqlType, ...]:
    return tuple(column.type for column in relation.columns)
