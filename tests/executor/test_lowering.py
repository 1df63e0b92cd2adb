"""A lowered relation has the same rows as the original; both run on the embedded engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.database.database import Database
from planner.algebra.validate import validate
from planner.lowering import lowered
from planner.statements.statement import Query
from tests.executor.client import Client, open_database, rows

SETUP = """
CREATE TABLE t (id int, g text, i int, n numeric(8,2), u numeric, v interval, j jsonb, d date);
INSERT INTO t VALUES (1, 'a', 1, 1.5, 0.1, '1 day', '{"a": 1}', '2024-01-31'),
    (2, 'a', 2, -1.5, 0.25, '1 mon', '[1]', '2024-02-29'),
    (3, 'b', 2, 1.5, 3, NULL, '"x"', NULL),
    (4, 'b', -2, 2.25, NULL, '-1 hour', NULL, '2024-03-30'),
    (5, NULL, NULL, NULL, 7, NULL, '2', '2024-01-01');
"""
QUERIES = (
    "SELECT g, var_samp(i), stddev(n), var_pop(u), stddev_pop(n), count(*) FROM t GROUP BY g ORDER BY g",
    "SELECT variance(DISTINCT n), stddev(DISTINCT i) FILTER (WHERE id < 5), sum(n) FROM t",
    "SELECT var_pop(n), variance(i) FROM t WHERE false",
    "SELECT avg(v), avg(v) FILTER (WHERE id = 1), sum(v) FROM t",
    "SELECT g, json_agg(i ORDER BY id), jsonb_agg(j ORDER BY id DESC) FROM t GROUP BY g ORDER BY g",
    "SELECT json_agg(q ORDER BY id) FROM (SELECT id, g FROM t) q",
    "SELECT id, var_pop(i) OVER (ORDER BY id), avg(v) OVER (ORDER BY id), sum(i) OVER () FROM t ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY i GROUPS 1 PRECEDING), stddev(n) OVER (ORDER BY g, id "
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING), rank() OVER (ORDER BY i) FROM t ORDER BY id",
    "SELECT id FROM t ORDER BY j DESC NULLS LAST, id",
    "SELECT id, row_number() OVER (ORDER BY j NULLS FIRST) FROM t ORDER BY id",
    "SELECT id FROM t ORDER BY id LIMIT (SELECT min(id) + 1 FROM t) OFFSET (SELECT 1 FROM t WHERE id = 3)",
    "SELECT id FROM t ORDER BY id DESC LIMIT (SELECT i FROM t WHERE id = 5)",
    "SELECT id, i + (SELECT max(m.i) FROM t m WHERE m.id <= t.id), (SELECT 1 FROM t m WHERE m.id = t.id) "
    "FROM t ORDER BY 1",
    "SELECT id FROM t WHERE i * 2 + (SELECT min(i) FROM t) > 0 AND id < (SELECT max(id) FROM t) ORDER BY id",
    "SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.id = (SELECT max(z.id) FROM t z WHERE z.id < y.id) ORDER BY 1, 2",
    "SELECT x.id, y.id FROM t x FULL JOIN t y ON x.i = y.id AND x.id = (SELECT 2 FROM t z WHERE z.id = x.id) "
    "ORDER BY 1, 2",
    "SELECT g, json_object_agg(id, i ORDER BY id), jsonb_object_agg(id, j) FROM t GROUP BY g ORDER BY g",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
    "SELECT min(v), max(v), count(DISTINCT v), min(v) FILTER (WHERE id > 2) FROM t",
    "SELECT id, count(*) OVER (PARTITION BY v), max(v) OVER (ORDER BY id) FROM t ORDER BY v DESC, id",
    "SELECT id FROM t WHERE v IN (SELECT v + '29 days' FROM t) ORDER BY id",
    "SELECT id FROM t WHERE v NOT IN (SELECT v FROM t WHERE id < 2) ORDER BY id",
    "SELECT v, 1 FROM t UNION SELECT v, 1 FROM t ORDER BY 1",
    "SELECT v FROM t INTERSECT SELECT '1 day' UNION ALL SELECT NULL INTERSECT SELECT v FROM t ORDER BY 1",
    "(SELECT v FROM t UNION ALL SELECT v FROM t) EXCEPT ALL SELECT v FROM t WHERE id <> 3 ORDER BY 1",
    "(SELECT v FROM t UNION ALL SELECT v FROM t) INTERSECT ALL SELECT v FROM t ORDER BY 1",
    "SELECT v FROM t EXCEPT SELECT v FROM t WHERE id = 2 ORDER BY 1",
    "SELECT id, sum(i) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), "
    "count(*) OVER (ORDER BY g RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP), "
    "rank() OVER (ORDER BY i), sum(id) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) "
    "FROM t ORDER BY id",
    "SELECT id, array_agg(id) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE "
    "CURRENT ROW), first_value(i) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW), "
    "last_value(id) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING EXCLUDE TIES), count(*) FILTER (WHERE i > 0) "
    "OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE CURRENT ROW) FROM t ORDER BY id",
    "SELECT id, sum(id) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW), "
    "count(*) OVER (ORDER BY i DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) "
    "FROM t ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '1 mon' PRECEDING AND '1 mon' FOLLOWING), "
    "max(id) OVER (ORDER BY d DESC RANGE '2 mons 1 day' PRECEDING) FROM t ORDER BY id",
    "SELECT id, lag(id, i) OVER (ORDER BY id), lead(g, id, 'no') OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY id",
    "SELECT t.id, l.b FROM t, LATERAL (SELECT t.i + 1 AS b) l WHERE l.b > 0 ORDER BY 1",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("lowering") / "data")
    Client(opened).run(SETUP)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_rows_are_the_same(database: Database, query: str) -> None:
    client = Client(database)
    statement = client.bind(query)
    assert isinstance(statement, Query)
    simpler = lowered(statement.relation)
    validate(simpler)
    assert simpler.columns == statement.relation.columns
    assert simpler != statement.relation
    found = client.session.execute(Query(simpler, statement.outputs))
    assert found.batches is not None
    assert [row for batch in found.batches for row in rows(batch)] == client.run(query)


def test_what_is_simple_already_stays(database: Database) -> None:
    statement = Client(database).bind("SELECT g, sum(i) FROM t WHERE id > (SELECT min(id) FROM t) GROUP BY g LIMIT 3")
    assert isinstance(statement, Query)
    assert lowered(statement.relation) is statement.relation
