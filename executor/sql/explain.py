"""EXPLAIN: the plan of a query or a change, and of each continuous view that it reads; of CREATE VIEW that of the view.

Owns: adding to the planner's text what only a running server knows: files, engines, and with ANALYZE the measured rows
and times. The text itself is ``planner.explain``'s; ``explained_views`` has what is known of views.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import JSON, TEXT
from executor.core.core import Core
from executor.core.plans import Plan
from executor.core.spark_queries import SparkQuery
from executor.database.database import Database
from executor.embedded.connection import plainly
from executor.files import file_tables
from executor.queries.engine_choice import Choice
from executor.queries.reader import Reader
from executor.queries.stream_query import with_values
from executor.separation.step_texts import pipelines_json, pipelines_text
from executor.separation.steps import CALLING
from executor.sql.environment import Environment
from executor.sql.explained_views import explain_definition, running_view
from executor.transactions.result import Result
from executor.transactions.transaction import Transaction
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Relation, Value
from planner.explain.changes import change_json, explain_change, relations_of
from planner.explain.plans import Rows, explain_relation, relation_json
from planner.explain.views import explain_view, view_json
from planner.rules.joins.cardinality import Cardinality
from planner.statements.statement import (
    AlterView,
    CreateTableAs,
    CreateView,
    DeclareCursor,
    Delete,
    Explain,
    Insert,
    Merge,
    Modifying,
    Output,
    Query,
    RowStatement,
    Update,
)
from planner.stream_queries import plan_arriving


def explain(
    session: Environment,
    statement: Explain,
    parameters: tuple[Value, ...],
    transaction: Transaction,
    run: Callable[[Transaction], Result],
) -> Result:
    """EXPLAIN's rows. ANALYZE runs the statement, and makes its changes; of DECLARE it runs the query.
    CREATE VIEW is planned and not run."""
    match statement.statement:
        case Query() as query:
            return _explain_query(session, statement, query, parameters, transaction)
        case DeclareCursor(query=query):
            return _explain_query(session, statement, query, parameters, transaction)
        case CreateView() | AlterView() as defined:
            return _result(explain_definition(session, defined, transaction, statement))
        case CreateTableAs(query=query):
            return _explain_change(session, statement, query, parameters, transaction, run)
        case Insert() | Update() | Delete() | Merge() | Modifying() as change:
            return _explain_change(session, statement, change, parameters, transaction, run)
        case other:
            raise AssertionError(f"EXPLAIN of {type(other).__name__} is not bound")


def _explain_query(
    session: Environment, statement: Explain, query: Query, parameters: tuple[Value, ...], transaction: Transaction
) -> Result:
    reader, relation = session.reader, query.relation
    database, core = session.database, session.core
    plan = core.plans.get(relation)
    measured: dict[str, Any] = {}
    measured |= _files_in_words(reader, plan, parameters)
    shown: Relation = plan.relation
    rows: Rows | None = None
    choice: Choice | None = None
    if plan.files or reader.query_engine != "auto":
        choice = reader.choice(plan, parameters)
        if choice.engine == "spark":
            shown, rows = _on_spark(database.analytics.require(choice.query))
        measured["Engine"] = choice.words
    engine = "embedded" if choice is None else choice.engine
    steps = CALLING if query.volatile else database.separation.steps(reader, plan, parameters, transaction, engine)
    if steps.plan is not None or reader.separable == "on":
        measured["Execution"] = steps.words
    if plan.arriving:
        measured["Query of a Stream"] = plan_arriving(with_values(Query(relation, ()), parameters)).way
    if statement.analyze:
        evaluate = session.evaluator(transaction) if query.volatile else plainly
        started = time.perf_counter()
        answer = reader.answer(relation, parameters, transaction, evaluate, choice)
        measured |= {"Actual Rows": answer.num_rows, **_time_since(started)}
    runtimes = _runtimes(core, (plan,))
    if statement.format == "json":
        document = _document(database, statement, relation_json(shown, rows), runtimes, measured)
        if steps.plan is not None:
            document["Pipelines"] = pipelines_json(core, steps)
        return _result(document)
    lines = _text(database, statement, explain_relation(shown, rows), runtimes, measured)
    return _result([*lines, *pipelines_text(core, steps)])


def _explain_change(
    session: Environment,
    statement: Explain,
    change: RowStatement,
    parameters: tuple[Value, ...],
    transaction: Transaction,
    run: Callable[[Transaction], Result],
) -> Result:
    """Of a statement that changes rows, or that fills a table from a query."""
    database, found = session.database, session.core.plans.get
    plans = [found(relation) for relation in relations_of(change)]
    measured: dict[str, Any] = {}
    for plan in plans:
        measured |= _files_in_words(session.reader, plan, parameters)
    runtimes = _runtimes(session.core, plans)
    notices: tuple[SqlError, ...] = ()
    if statement.analyze:
        started = time.perf_counter()
        result = run(transaction)
        measured |= {**_counted(result), **_time_since(started)}
        notices = result.notices

    def planned(relation: Relation) -> Relation:
        return found(relation).relation

    if statement.format == "json":
        return _result(_document(database, statement, change_json(change, planned), runtimes, measured), notices)
    return _result(_text(database, statement, explain_change(change, planned), runtimes, measured), notices)


def _result(shown: list[str] | dict[str, Any], notices: tuple[SqlError, ...] = ()) -> Result:
    """EXPLAIN's one column: lines, or a document."""
    text, kind = ([json.dumps([shown], indent=2)], JSON) if isinstance(shown, dict) else (shown, TEXT)
    batch = pa.RecordBatch.from_arrays([pa.array(text, pa.string())], names=["QUERY PLAN"])
    return Result("EXPLAIN", (Output("QUERY PLAN", kind),), (batch,), notices)


def _runtimes(core: Core, plans: Sequence[Plan]) -> list[ViewRuntime]:
    """The continuous views that some plans read, and those below."""
    return [core.view(oid) for oid in core.views_below(tuple(oid for plan in plans for oid in plan.views))]


def _counted(result: Result) -> dict[str, int]:
    """How many rows a statement says to have changed, and how many it returned, if it does."""
    count = result.tag.rpartition(" ")[2]
    changed = {"Changed Rows": int(count)} if count.isdigit() else {}
    returned = None if result.batches is None else sum(batch.num_rows for batch in result.batches)
    return changed if returned is None else {**changed, "Actual Rows": returned}


def _time_since(started: float) -> dict[str, float]:
    return {"Execution Time (ms)": round((time.perf_counter() - started) * 1000, 3)}


def _on_spark(query: SparkQuery) -> tuple[Relation, Rows | None]:
    """A plan with its joins in Spark's order, and the estimated rows by which they came into it, if any did."""
    return query.relation, Cardinality(query.relation, query.statistics).rows if query.statistics else None


def _files_in_words(reader: Reader, plan: Plan, parameters: tuple[Value, ...]) -> dict[str, str]:
    """How many of the files of each foreign table a plan reads."""
    found = {}
    for reading in plan.files:
        every = file_tables.find(file_tables.table_of(reader.core.catalog, reading.scan))
        kept = len(reader.files_of(reading, reader.core.catalog, parameters).files)
        of = f" of {len(every.files)}" if kept < len(every.files) else ""
        found[f"Files of {reading.scan.name}"] = f"{kept}{of}"
    return found


def _text(
    database: Database, statement: Explain, lines: list[str], runtimes: list[ViewRuntime], measured: dict[str, Any]
) -> list[str]:
    for runtime in runtimes:
        lines += explain_view(running_view(database, runtime, statement.pace))
    return lines + [f"{name}: {value}" for name, value in measured.items()]


def _document(
    database: Database,
    statement: Explain,
    plan: dict[str, Any],
    runtimes: list[ViewRuntime],
    measured: dict[str, Any],
) -> dict[str, Any]:
    shown = (running_view(database, runtime, statement.pace) for runtime in runtimes)
    views = {view.name: view_json(view) for view in shown}
    return {"Plan": plan, **({"Continuous Views": views} if views else {}), **measured}
