"""Kept answers: valid while catalog and inputs are the same, limited in bytes; plans by text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.sql.session import DatabaseSession
from planner.parse.parser import parse
from server.plans.answer_cache import ResultCache, Stamp
from server.plans.planning import Bounded, PlanCache, Surroundings


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = Database.open(Options(tmp_path_factory.mktemp("data"), spark_enabled=False))
    yield opened
    opened.close()


def around(session: DatabaseSession) -> Surroundings:
    return Surroundings(session.catalog, ("public",), "UTC", "millstream", "millstream", "millstream")


def run(session: DatabaseSession, plans: PlanCache, text: str) -> None:
    (raw,) = parse(text)
    session.execute(plans.plan(raw, (), around(session)).statement)


def test_an_answer_holds_until_what_it_reads_changes(database: Database) -> None:
    session, plans, results = DatabaseSession(database, "millstream", "millstream"), PlanCache(), ResultCache(1 << 20)
    run(session, plans, "CREATE TABLE kept (a integer)")
    run(session, plans, "CREATE TABLE other (a integer)")

    def data(results: ResultCache) -> bytes | None:
        answer = results.get("key", database)
        return None if answer is None else answer.data

    (raw,) = parse("SELECT a FROM kept")
    plan = plans.plan(raw, (), around(session))
    assert plan.repeatable
    results.put("key", b"answer", Stamp(plan.catalog, plan.reads, database.core.version_of(plan.reads)))
    assert data(results) == b"answer"
    run(session, plans, "INSERT INTO other VALUES (1)")
    assert data(results) == b"answer"
    run(session, plans, "INSERT INTO kept VALUES (1)")
    assert results.get("key", database) is None
    results.put("key", b"newer", Stamp(plan.catalog, plan.reads, database.core.version_of(plan.reads)))
    assert data(results) == b"newer"
    run(session, plans, "CREATE TABLE third (a integer)")
    assert results.get("key", database) is None
    session.close()


def test_the_oldest_answers_go_first(database: Database) -> None:
    results, stamp = ResultCache(10_000), Stamp(database.core.catalog, (), 0)
    for number in range(100):
        results.put(number, b"x" * 500, stamp)
    kept = [number for number in range(100) if results.get(number, database) is not None]
    assert kept == list(range(100 - len(kept), 100))
    assert 5 <= len(kept) <= 10
    results.put("large", b"x" * 5000, stamp)
    assert results.get("large", database) is None


def test_plans_are_made_once_for_a_catalog(database: Database) -> None:
    session, plans = DatabaseSession(database, "millstream", "millstream"), PlanCache()
    run(session, plans, "CREATE TABLE ddl_between (a integer)")
    (raw,) = parse("SELECT a FROM ddl_between")
    first = plans.plan(raw, (), around(session))
    assert plans.plan(raw, (), around(session)) is first
    run(session, plans, "ALTER TABLE ddl_between ADD COLUMN b integer")
    assert plans.planned(raw, (), around(session)) is None
    assert plans.plan(raw, (), around(session)) is not first
    session.close()


def test_texts_that_differ_in_values_share_a_plan(database: Database) -> None:
    session, plans = DatabaseSession(database, "millstream", "millstream"), PlanCache()
    run(session, plans, "CREATE FOREIGN TABLE shared_plan (a integer, b text) SERVER stream")
    here = around(session)
    assert plans.shared("INSERT INTO shared_plan VALUES (1, 'x')", here, make=False) is None
    first = plans.shared("INSERT INTO shared_plan VALUES (1, 'x')", here, make=True)
    second = plans.shared("INSERT INTO shared_plan VALUES (22, 'yy')", here, make=False)
    assert first is not None
    assert second is not None
    assert second.plan is first.plan
    assert [literal.value for literal in second.literals] == [22, "yy"]
    assert plans.shared("INSERT INTO no_such_table VALUES (1)", here, make=True) is None
    session.close()


@pytest.mark.parametrize(
    ("text", "repeatable", "calls_session"),
    [
        ("SELECT 1", True, False),
        ("SELECT current_user", True, True),
        ("SELECT now()", False, True),
        ("SELECT random()", False, False),
        ("SELECT * FROM millstream.views", False, False),
        ("SHOW jit", False, False),
    ],
)
def test_what_may_be_kept(database: Database, text: str, repeatable: bool, calls_session: bool) -> None:
    session = DatabaseSession(database, "millstream", "millstream")
    (raw,) = parse(text)
    plan = PlanCache().plan(raw, (), around(session))
    assert (plan.repeatable, plan.calls_session) == (repeatable, calls_session)
    session.close()


def test_an_error_is_not_a_plan(database: Database, tmp_path: Path) -> None:
    session, plans = DatabaseSession(database, "millstream", "millstream"), PlanCache()
    (raw,) = parse("SELECT a FROM appears_later")
    with pytest.raises(SqlError):
        plans.plan(raw, (), around(session))
    run(session, plans, "CREATE TABLE appears_later (a integer)")
    assert plans.plan(raw, (), around(session)).repeatable
    session.close()


def test_bounded_forgets_the_oldest() -> None:
    bounded: Bounded[int] = Bounded(16)
    for number in range(100):
        bounded.put(number, number)
    assert bounded.get(99) == 99
    assert bounded.get(0) is None
    assert sum(bounded.get(number) is not None for number in range(100)) <= 16
