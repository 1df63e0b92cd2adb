"""EXPLAIN CREATE VIEW and CREATE MATERIALIZED VIEW: the plan is that of the view that CREATE makes, nothing is created,
and what CREATE refuses is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

Client = psycopg.Connection[Any]

GROUPS = "SELECT tumble(at, '1 minute') AS w, count(*) AS n FROM ex_s GROUP BY 1"
JOINED = "SELECT a.k, name FROM ex_s a JOIN ex_s b ON b.k = a.k JOIN ex_t ON id = a.k"
SUMMED = "SELECT name, count(*) AS n FROM ex_t GROUP BY name"
RANKED = "SELECT id, percent_rank() OVER (ORDER BY name) AS place FROM ex_t"


#: Queries that no view may have.
WRONG = (
    "SELECT date 'today'",
    "SELECT k, 'abc'::int FROM ex_s",
    "WITH x AS (DELETE FROM ex_t RETURNING *) SELECT * FROM x",
    "SELECT * FROM millstream.changes('ex_t')",
    "SELECT $1",
    "SELECT * FROM ex_nowhere",
    "SELECT id FROM ex_t FOR UPDATE",
    "SELECT 1 AS a, 2 AS a",
    "SELECT ex_s FROM ex_s",
    "SELECT current_user, count(*) FROM ex_s",
)


@pytest.fixture
def client(sql: Client) -> Iterator[Client]:
    sql.execute("CREATE FOREIGN TABLE ex_s (k int, at timestamp) SERVER stream OPTIONS (watermark 'at')")
    sql.execute("CREATE TABLE ex_t (id int PRIMARY KEY, name text)")
    sql.execute("INSERT INTO ex_t SELECT i, 'n' || i % 7 FROM generate_series(1, 700) i")
    yield sql
    sql.execute("DROP FOREIGN TABLE ex_s CASCADE")
    sql.execute("DROP TABLE ex_t CASCADE")


def lines(client: Client, text: str) -> list[str]:
    return [line.strip() for (line,) in client.execute(text.encode()).fetchall()]


def document(client: Client, text: str) -> dict[str, Any]:
    row = client.execute(f"EXPLAIN (FORMAT JSON) {text}".encode()).fetchall()
    ((found,),) = row
    (only,) = found if isinstance(found, list) else json.loads(found)
    assert isinstance(only, dict)
    return only


def exists(client: Client, name: str) -> bool:
    return client.execute("SELECT count(*) FROM pg_class WHERE relname = %s", (name,)).fetchone() != (0,)


@pytest.mark.parametrize(
    "create",
    [
        f"CREATE VIEW ex_v WITH (retention = '1 hour', emit = 'final') AS {GROUPS}",
        f"CREATE MATERIALIZED VIEW ex_v AS {JOINED}",
        f"CREATE VIEW ex_v WITH (maintained) AS {SUMMED}",
        f"CREATE MATERIALIZED VIEW ex_v AS {RANKED}",
        "CREATE VIEW ex_v WITH (tables = 'frozen') AS SELECT name, count(*) FROM ex_s JOIN ex_t ON id = k GROUP BY 1",
    ],
)
def test_the_plan_is_that_of_the_view(client: Client, create: str) -> None:
    before = document(client, create)["Continuous Views"]["ex_v"]
    assert not exists(client, "ex_v")
    client.execute(create.encode())
    after = document(client, "SELECT * FROM ex_v")["Continuous Views"]["ex_v"]
    for view in (before, after):
        view["Upper Method"].pop("Time of Computing Anew (ms)", None)
        for path in view["Stream Pipelines"]:
            path["When"] = path["When"].partition(" (durable")[0]
            for statement in path["Statements"]:
                statement.pop("Rows", None)
    assert _without_oids(before) == _without_oids(after)


def _without_oids(view: dict[str, Any]) -> dict[str, Any]:
    """A plan in which states are not called by their view's number, which is given when it is created, and without
    estimates, which know of states how many rows they have."""
    upper = view["Upper Method"]
    for node in upper.get("Nodes", []):
        node["How"] = node["How"].partition("state v")[0]
        node.pop("Estimated Change", None)
    view["Upper Method"] = {name: value for name, value in upper.items() if not name.startswith("Estimated")}
    return view


def test_the_text_says_how_each_part_is_maintained(client: Client) -> None:
    found = lines(client, f"EXPLAIN CREATE VIEW ex_v AS {JOINED}")
    assert found[:3] == ["Create View ex_v", "Continuous View ex_v", "Stream Pipeline of ex_s"]
    assert "How: delta propagation, rows collected" in found
    assert "Grows: with ex_s, by each row that passes its conditions" in found
    assert "Method: by changes, once reads take long enough (recomputation until then)" in found
    assert 'Notice: the view keeps the rows of stream "ex_s": streams are joined before they are grouped' in found
    assert "Detail: Its state grows with the stream, by the columns and rows that the query uses." in found
    bounded = lines(client, f"EXPLAIN CREATE VIEW ex_v WITH (retention = '1 hour') AS {GROUPS}")
    assert "Retention: 1 hour" in bounded
    assert any(line.startswith("Kept: until max_at of state_2") for line in bounded)
    ranked = lines(client, f"EXPLAIN CREATE MATERIALIZED VIEW ex_v AS {RANKED}")
    assert "Computed at Each Read: a window function has all rows in one partition" in ranked
    assert "->  Scan on ex_t (id, name)  (rows=700)" in ranked


def test_an_ordinary_view_is_its_query(client: Client) -> None:
    found = lines(client, f"explain create or replace view ex_v as {SUMMED}")
    assert found[:3] == ["Create View ex_v", "Method: recomputation", "Computed at Each Read: it is an ordinary view"]
    assert "->  Scan on ex_t (name)  (rows=700)" in found
    (plan,) = document(client, f"CREATE VIEW ex_v AS {SUMMED}")["Plan"]["Plans"]
    assert plan["Plan Rows"] == 7
    assert not exists(client, "ex_v")


def test_a_replaced_view_keeps_its_states_or_is_refused(client: Client) -> None:
    client.execute(f"CREATE VIEW ex_v WITH (retention = '1 hour') AS {GROUPS}".encode())
    shorter = document(client, f"CREATE OR REPLACE VIEW ex_v WITH (retention = '1 minute') AS {GROUPS}")
    assert shorter["Continuous Views"]["ex_v"]["Retention"] == "1 minute"
    assert "keeps its states" in shorter["Notices"][0]["Message"]
    with pytest.raises(errors.FeatureNotSupported, match="older rows have left its states"):
        lines(client, f"EXPLAIN CREATE OR REPLACE VIEW ex_v AS {GROUPS}")
    with pytest.raises(errors.FeatureNotSupported, match="its rows would be lost"):
        lines(client, "EXPLAIN CREATE OR REPLACE VIEW ex_v AS SELECT max(at) AS w, count(*) AS n FROM ex_s")
    with pytest.raises(errors.DuplicateTable):
        lines(client, f"EXPLAIN CREATE VIEW ex_v AS {SUMMED}")
    assert client.execute("SELECT reloptions FROM pg_class WHERE relname = 'ex_v'").fetchone() == (
        ["retention=1 hour"],
    )


@pytest.mark.parametrize(
    ("sqlstate", "text", "position"),
    [
        ("0A000", f"EXPLAIN ANALYZE CREATE VIEW ex_v AS {SUMMED}", None),
        ("0A000", f"EXPLAIN (ANALYZE) CREATE MATERIALIZED VIEW ex_v AS {SUMMED}", None),
        ("0A000", f"EXPLAIN CREATE MATERIALIZED VIEW ex_v WITH (refresh_policy = 'incremental') AS {RANKED}", None),
        ("0A000", f"EXPLAIN CREATE VIEW ex_v WITH (refresh_policy = 'incremental') AS {SUMMED}", None),
        ("0A000", "EXPLAIN CREATE VIEW ex_v AS SELECT random(), count(*) FROM ex_s", "36"),
        ("0A000", "EXPLAIN CREATE VIEW ex_v WITH (retention = '1 day') AS SELECT k FROM ex_s GROUP BY k", "70"),
        ("22023", f"EXPLAIN CREATE VIEW ex_v WITH (method = 'best') AS {SUMMED}", "32"),
        ("42703", "EXPLAIN (FORMAT JSON) CREATE VIEW ex_v AS SELECT nope FROM ex_t", "50"),
        ("42601", "EXPLAIN CREATE VIEW ex_v AS SELCT 1", "29"),
        ("42601", "EXPLAIN (NONSENSE) CREATE VIEW ex_v AS SELECT 1", "10"),
        ("42601", "EXPLAIN CREATE VIEW", "20"),
    ],
)
def test_errors_are_those_of_create(client: Client, sqlstate: str, text: str, position: str | None) -> None:
    with pytest.raises(psycopg.Error) as raised:
        client.execute(text.encode())
    assert (raised.value.sqlstate, raised.value.diag.statement_position) == (sqlstate, position)
    assert not exists(client, "ex_v")


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_an_error_in_the_query_is_that_of_create(client: Client, kind: str) -> None:
    for query in WRONG:
        found = []
        for before in ("", "EXPLAIN "):
            with pytest.raises(psycopg.Error) as raised:
                client.execute(f"{before}CREATE {kind} ex_v AS {query}".encode())
            told = raised.value.diag
            place = None if told.statement_position is None else int(told.statement_position) - len(before)
            found.append((told.sqlstate, told.message_primary, told.message_hint, place))
        assert found[0] == found[1]


def test_what_a_read_has_taken_is_shown(client: Client) -> None:
    client.execute(f"CREATE MATERIALIZED VIEW ex_v WITH (method = 'incremental') AS {SUMMED}".encode())
    for number in range(3):
        client.execute("INSERT INTO ex_t VALUES (%s, 'new')", (-1 - number,))
        client.execute("SELECT * FROM ex_v")
    method = document(client, "SELECT * FROM ex_v")["Continuous Views"]["ex_v"]["Upper Method"]
    assert method["Time of Following a Change (ms)"] > 0
    assert [node["Rows Kept"] for node in method["Nodes"] if "Rows Kept" in node][-1] == 8
    names = ("Rows Read", "Inserted", "Deleted")
    last = [tuple(node["Last Change"][name] for name in names) for node in method["Nodes"]]
    assert last == [(0, 1, 0), (1, 1, 1), (2, 1, 1)]
    assert all(node["Last Change"]["Milliseconds"] > 0 for node in method["Nodes"])
    told = lines(client, "EXPLAIN SELECT * FROM ex_v")
    assert any(line.startswith("Last Change: 1 row read, 1 inserted, 1 deleted, ") for line in told)
    assert method["Estimated For"] == "ex_t: 1 inserted row"
    estimated = [tuple(node["Estimated Change"][name] for name in names) for node in method["Nodes"]]
    assert estimated[0] == (0, 1, 0)
    assert sum(node["Estimated Change"]["Milliseconds"] for node in method["Nodes"]) > 0


def test_the_option_method_counts(client: Client) -> None:
    at_once = document(client, f"CREATE MATERIALIZED VIEW ex_v WITH (method = 'incremental') AS {SUMMED}")
    assert at_once["Continuous Views"]["ex_v"]["Upper Method"]["Method"] == "by changes, from the first read on"
    never = document(client, f"CREATE MATERIALIZED VIEW ex_v WITH (method = 'recompute') AS {SUMMED}")
    reason = "the view has method = 'recompute'"
    expected = {"Method": "recomputation", "Computed at Each Read": [reason]}
    assert never["Continuous Views"]["ex_v"]["Upper Method"] == expected
    with pytest.raises(errors.FeatureNotSupported, match=reason):
        options = "method = 'recompute', refresh_policy = 'incremental'"
        client.execute(f"CREATE MATERIALIZED VIEW ex_v WITH ({options}) AS {SUMMED}".encode())


def test_a_plan_is_made_again_when_the_catalog_is_another(client: Client) -> None:
    text = f"EXPLAIN CREATE VIEW ex_v AS {SUMMED}"
    for _ in range(7):  # the client prepares what it sends often
        assert lines(client, text)[0] == "Create View ex_v"
    client.execute(f"CREATE VIEW ex_v AS {SUMMED}".encode())
    with pytest.raises(errors.DuplicateTable):
        client.execute(text.encode())


def test_several_statements_and_privileges(client: Client) -> None:
    cursor = client.execute(f"SELECT 1; EXPLAIN CREATE VIEW ex_v AS {GROUPS}; SELECT 2".encode())
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchone() == ("Create View ex_v",)
    assert cursor.nextset()
    assert cursor.fetchall() == [(2,)]
    client.execute("BEGIN READ ONLY")
    assert lines(client, f"EXPLAIN CREATE VIEW ex_v AS {GROUPS}")[0] == "Create View ex_v"
    client.execute("COMMIT")
    client.execute("CREATE ROLE ex_reader; SET ROLE ex_reader")
    with pytest.raises(errors.InsufficientPrivilege):
        client.execute(f"EXPLAIN CREATE VIEW ex_v AS {GROUPS}".encode())
    client.execute("RESET ROLE; DROP ROLE ex_reader")
