"""Restricted static inputs: the same views as with the whole inputs, for every kind of join."""

from __future__ import annotations

import random

import pytest

from executor.database.database import Database
from executor.embedded import static_semijoin
from executor.embedded.static_semijoin import reductions_of
from tests.executor.client import Client

#: Views by the number of static inputs that are restricted for a few rows.
CUT = {
    "SELECT t.name, count(*), sum(s.n) FROM s JOIN t ON s.k = t.k GROUP BY t.name": 1,
    "SELECT t.name, count(*), sum(s.n) FROM t JOIN s ON s.k = t.k AND t.m > s.n GROUP BY t.name": 1,
    "SELECT name, count(*), count(t.k) AS met, sum(n) FROM s LEFT JOIN t ON t.k = s.k AND n > 0 GROUP BY name": 1,
    "SELECT s.n, count(*) FROM s WHERE k IN (SELECT k FROM t WHERE m > 3) GROUP BY s.n": 1,
    "SELECT n, count(*) FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.m > 3) GROUP BY n": 1,
    "SELECT t.name, u.name AS x, count(*) FROM s JOIN t ON t.k = s.k JOIN t AS u ON u.m = s.n GROUP BY 1, 2": 2,
    "SELECT t.name, count(*) FROM s JOIN t ON t.k + 1 = s.k GROUP BY t.name": 0,
    "SELECT t.name, count(*) FROM s JOIN t ON t.name = s.n::text GROUP BY t.name": 0,
}
#: Keys of the table: some repeated, some never joined by the stream, and one that no row has.
KEYS = 40


def _fill(client: Client, chance: random.Random) -> None:
    client.run("CREATE TABLE t (k int NOT NULL, m bigint NOT NULL, name text)")
    client.run("CREATE FOREIGN TABLE s (k bigint, n int) SERVER stream")
    client.run("CREATE TABLE all_rows (k bigint, n int)")
    values = (f"({chance.randrange(KEYS)}, {chance.randrange(9)}, 'n{chance.randrange(7)}')" for _ in range(60))
    client.run(f"INSERT INTO t VALUES {', '.join(values)}")


@pytest.mark.slow
@pytest.mark.parametrize("text", CUT)
def test_views_are_those_of_whole_inputs(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(static_semijoin, "_LITTLE", 3)
    chance = random.Random(text)
    _fill(client, chance)
    client.run(f"CREATE VIEW v WITH (tables = 'frozen') AS {text}")
    (runtime,) = database.core.runtimes()
    found = [
        item for path in runtime.program.paths for each in path.statements for item in reductions_of(each.relation)
    ]
    assert len(found) == CUT[text]
    for _ in range(6):
        keys = (chance.choice(("NULL", chance.randrange(2 * KEYS))) for _ in range(chance.randrange(1, 8)))
        rows = ", ".join(f"({key}, {chance.randrange(6)})" for key in keys)
        client.run(f"INSERT INTO s VALUES {rows}; INSERT INTO all_rows VALUES {rows}")
        expected = client.run(text.replace("FROM s ", "FROM all_rows AS s ").replace("JOIN s ", "JOIN all_rows AS s "))
        assert sorted(client.run("SELECT * FROM v"), key=repr) == sorted(expected, key=repr)


def test_an_input_is_cut_once_it_comes_again(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_semijoin, "_LITTLE", 3)
    _fill(client, random.Random(1))
    client.run("CREATE VIEW v WITH (tables = 'frozen') AS SELECT t.name, count(*) FROM s JOIN t USING (k) GROUP BY 1")
    (runtime,) = database.core.runtimes()
    (found,) = reductions_of(runtime.program.paths[0].statements[0].relation)
    (static,) = runtime.runner.statics.values()
    path = runtime.paths[0]
    client.run("INSERT INTO s VALUES (1, 1), (7, 1), (7, 2), (NULL, 1), (1000, 1)")
    delta = runtime.runner.inputs[path.path.inputs[0]].delta(path.reached, database.core.sequencer.visible)
    assert found.reduced(static, delta) is static
    cut = found.reduced(static, delta)
    assert 0 < cut.num_rows < static.num_rows
    key = static.schema.names[static.schema.types.index(cut.schema.types[0])]
    assert cut.column(key).to_pylist() == [value for value in static.column(key).to_pylist() if value in (1, 7)]
