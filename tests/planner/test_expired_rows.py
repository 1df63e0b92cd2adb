"""Conditions that hold for all rows which a state has not lost: which are left out, and which are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from planner.algebra.event_time import Keeping, Watermark
from planner.algebra.nodes import Delta, Scan, Snapshot
from planner.algebra.walk import transform, walk
from planner.incremental.dataflow.rewrites.expired_rows import without_expired
from planner.incremental.plan import plan
from planner.incremental.programs.program import Program, Statement
from planner.rules import optimise
from tests.planner.bound import catalog_of, query_of

MINUTE = 60_000_000
STREAMS = (
    "CREATE FOREIGN TABLE a (k int, at timestamp, x int) SERVER stream",
    "CREATE FOREIGN TABLE b (k int, at timestamp, x int) SERVER stream",
)
LEFT = "FROM a LEFT JOIN b ON b.k = a.k AND b.at BETWEEN a.at AND a.at + interval '5 min'"
LATEST = "(SELECT max(at) FROM b)"


def program_of(query: str, retention: int | None = None, *, final: bool = False) -> Program:
    """That of a view over streams with watermarks."""
    bound = query_of(query, catalog_of(STREAMS))
    watermarks = {item.oid: Watermark("at", 0) for item in walk(bound.relation) if isinstance(item, Scan)}
    keeping = Keeping(watermarks, retention, final) if retention is not None or final else None
    return plan(bound, keeping, watermarks=watermarks).program


def latest_times(program: Program) -> tuple[int, int]:
    """How often the final relation reads the latest time of a stream, as it is and over what is not lost."""
    relation = optimise(program.final)
    found = relation, without_expired(relation, program)
    assert found[0].columns == found[1].columns
    marks = {mark.watermark for item in program.expiries for mark in item.marks}
    one, other = (sum(isinstance(node, Snapshot) and node.trace in marks for node in walk(item)) for item in found)
    return one, other


@pytest.mark.parametrize(
    ("query", "retention", "counts"),
    [
        (f"SELECT a.k, b.x {LEFT}", None, (1, 0)),
        (f"SELECT a.k, count(*), count(b.x) AS m {LEFT} GROUP BY a.k", None, (1, 0)),
        (f"SELECT a.k, b.k AS l {LEFT.replace('LEFT', 'FULL')}", None, (2, 0)),
        ("SELECT k, at FROM a", 60 * MINUTE, (1, 0)),
        ("SELECT l.k, r.x FROM a l JOIN a r ON l.k = r.k AND l.x < r.x", 60 * MINUTE, (2, 0)),
        ("SELECT date_trunc('hour', at) AS h, count(*) FROM a GROUP BY 1", 60 * MINUTE, (1, 0)),
        ("SELECT a.k, b.x FROM a JOIN b ON b.k = a.k AND b.at BETWEEN a.at AND a.at + interval '5 min'", None, (0, 0)),
    ],
)
def test_conditions_that_hold_are_left_out(query: str, retention: int | None, counts: tuple[int, int]) -> None:
    assert latest_times(program_of(query, retention)) == counts


@pytest.mark.parametrize("query", [f"SELECT a.k, b.x {LEFT}", "SELECT k, at FROM a"])
def test_a_condition_that_asks_for_more_stays(query: str) -> None:
    """Where a state keeps its rows for longer than the view shows them."""
    program = program_of(query, None if "JOIN" in query else 60 * MINUTE)
    longer = tuple(replace(item, age=item.age + 1) for item in program.expiries)
    shorter = tuple(replace(item, age=item.age - 1) for item in program.expiries)
    assert latest_times(replace(program, expiries=longer)) == (1, 1)
    assert latest_times(replace(program, expiries=shorter)) == (1, 0)


def test_a_latest_time_that_is_shown_stays() -> None:
    assert latest_times(program_of(f"SELECT a.k, b.x, {LATEST} AS latest {LEFT}")) == (2, 1)


def test_a_condition_that_counts_from_the_first_latest_time_on_stays() -> None:
    """Before the other stream has a time no row passes it, while the state has rows: the two streams swapped."""
    program = program_of("SELECT k, at FROM a", 60 * MINUTE)
    assert latest_times(program) == (1, 0)
    (path,) = program.paths
    marks = {mark.watermark for item in program.expiries for mark in item.marks}
    statements = tuple(_of_another(item) if item.target in marks else item for item in path.statements)
    assert latest_times(replace(program, paths=(replace(path, statements=statements),))) == (1, 1)


def _of_another(statement: Statement) -> Statement:
    """A statement over the changes of another stream."""
    found = transform(statement.relation, lambda node: replace(node, oid=7) if isinstance(node, Delta) else node)
    return replace(statement, relation=found)


def test_final_groups_wait_for_the_latest_time() -> None:
    query = "SELECT date_trunc('hour', at) AS h, count(*) FROM a GROUP BY 1"
    assert latest_times(program_of(query, 60 * MINUTE, final=True)) == (1, 1)
