"""How a query of a stream is planned, and what its program reads."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from planner.algebra.nodes import Delta, Join, Relation, Scan
from planner.algebra.walk import walk
from planner.statements.statement import Query
from planner.stream_queries import RowLimit, plan_arriving
from tests.planner.binding import STREAMS, TABLES, Database

ROWS, STATES, COLLECTED = "as they arrive", "states of groupings", "collected"


@pytest.fixture(scope="module")
def database() -> Database:
    """Tables, a stream and a continuous view."""
    made = Database(TABLES)
    made.run(STREAMS)
    return made


@pytest.mark.parametrize(
    ("query", "way"),
    [
        ("select * from s", ROWS),
        ("select k + 1 from s where v > 3 limit 5 offset 2", ROWS),
        ("select w, t from a join s on i = k where bo", ROWS),
        ("select w, t from s left join a on i = k", ROWS),
        ("select w, total from s join cv using (k)", ROWS),
        ("select w from s where k in (select i from a) and v > (select max(x) from b)", ROWS),
        ("select random() from s", ROWS),
        ("select count(*) from s", STATES),
        ("select distinct k from s order by k limit 3", STATES),
        ("select i from a where exists (select from s where k = i)", STATES),
        ("select k, rank() over (order by count(*)) from s group by k", STATES),
        ("select k, count(*) from s where random() < 0.5 group by k", COLLECTED),
        ("select * from s order by v", COLLECTED),
        ("select * from s limit (select count(*) from a)", COLLECTED),
        ("select t, s.v from a left join s on i = k", COLLECTED),
        ("select row_number() over () from s", COLLECTED),
        ("select x.v from s x join s y on x.k = y.v", COLLECTED),
    ],
)
def test_the_first_way_that_fits_is_taken(database: Database, query: str, way: str) -> None:
    planned = plan_arriving(database.query(query))
    assert way in planned.way
    relations = [planned.rows, planned.final, *(statement.relation for statement in planned.statements)]
    assert not any(isinstance(node, Scan) for item in relations if item is not None for node in walk(item))


def test_the_stream_is_the_probe_side(database: Database) -> None:
    planned = plan_arriving(database.query("select a.t from a, b, s where a.i = k and b.x = s.v"))
    assert planned.rows is not None
    (join, *_) = [node for node in walk(planned.rows) if isinstance(node, Join)]
    assert _reads_delta(join.left) and not _reads_delta(join.right)
    assert len(planned.statics) == 2


def _reads_delta(relation: Relation) -> bool:
    return any(isinstance(node, Delta) for node in walk(relation))


def test_a_constant_limit_is_a_slice(database: Database) -> None:
    assert plan_arriving(database.query("select k from s limit 5 offset 2")).limit == RowLimit(5, 2)
    assert plan_arriving(database.query("select k from s limit null")).limit == RowLimit()


def test_a_sequence_s_function_is_refused(database: Database) -> None:
    with pytest.raises(SqlError, match=r"lastval\(\) in a query of a stream"):
        plan_arriving(database.query("select lastval() from s"))


def test_several_streams_are_refused(database: Database) -> None:
    database.run("create foreign table other (k int) server stream")
    both = Join(
        "inner", database.query("select * from s").relation, database.query("select * from other").relation, None
    )
    with pytest.raises(SqlError, match="several streams"):
        plan_arriving(Query(both, ()))
