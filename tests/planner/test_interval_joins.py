"""Joins of streams whose times bound each other: their program, and the paths of statements over several inputs."""

from __future__ import annotations

import json

import pytest

from catalog.values.types import INT4
from planner.algebra.event_time import Watermark
from planner.algebra.nodes import Column, Scan, Snapshot
from planner.algebra.walk import walk
from planner.explain.programs import explain_program
from planner.incremental.plan import plan
from planner.incremental.programs.documents import decode_program, encode_program
from planner.incremental.programs.program import Statement, paths_of
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of

STREAMS = (
    "CREATE FOREIGN TABLE placed (id int, at timestamp, item text) SERVER stream",
    "CREATE FOREIGN TABLE shipped (id int, at timestamp, cost int) SERVER stream",
)
QUERY = (
    "SELECT item, count(*), sum(cost) FROM placed p JOIN shipped s ON s.id = p.id "
    "AND s.at BETWEEN p.at AND p.at + interval '1 day' GROUP BY item"
)
OUTER = (
    "SELECT p.id, item, cost FROM placed p LEFT JOIN shipped s ON s.id = p.id "
    "AND s.at BETWEEN p.at AND p.at + interval '1 day'"
)


@pytest.mark.parametrize(("name", "query"), [("interval_join", QUERY), ("interval_left_join", OUTER)])
def test_the_program(name: str, query: str, rewrite: bool) -> None:
    bound = query_of(query, catalog_of(STREAMS))
    oids = {item.name: item.oid for item in walk(bound.relation) if isinstance(item, Scan)}
    watermarks = {oids["placed"]: Watermark("at", 0), oids["shipped"]: Watermark("at", 60_000_000)}
    planned = plan(bound, watermarks=watermarks)
    golden.check(f"explain/{name}", explain_program(planned.program), rewrite)
    assert decode_program(json.loads(json.dumps(encode_program(planned.program)))) == planned.program


def _statement(target: str, *read: str) -> Statement:
    """One that fills a state and reads others."""
    column = Column(1, "k", INT4)
    relation = Snapshot(read[0] if read else "static", (column,), ("c1",))
    assert len(read) < 2
    return Statement(target, relation)


def test_statements_over_inputs_in_common_are_one_path() -> None:
    one, two, three, four = (_statement(name) for name in ("one", "two", "three", "four"))
    paths = paths_of([((1,), one), ((4,), four), ((2,), two), ((2, 3), three)])
    assert [(path.id, path.inputs) for path in paths] == [(0, (1,)), (1, (4,)), (2, (2, 3))]
    assert paths[2].statements == (two, three)
    (path,) = paths_of([((1,), one), ((2,), two), ((2, 3), three), ((3, 1), four)])
    assert set(path.inputs) == {1, 2, 3}
    assert path.statements == (one, two, three, four)


def test_readers_come_before_what_they_read() -> None:
    latest, rows, joined = _statement("latest"), _statement("rows", "latest"), _statement("joined", "rows")
    other = _statement("other")
    (path,) = paths_of([((1,), item) for item in (latest, other, rows, joined)])
    assert path.statements == (joined, rows, latest, other)
