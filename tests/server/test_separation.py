"""Queries that leave their server, with real clients: requested by another session, continued after a restart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside
from tests.rig.holding import HELD
from tests.rig.process import wait_until
from tests.rig.server import Millstream

pytestmark = pytest.mark.slow  # a server of its own

#: Rows of a cross join that takes a second or more.
MANY = "t a, t b, t c, generate_series(1, 3) d WHERE (a.k + b.k * c.k * d) % 7 = 1"
#: Three pipelines; the first one takes long enough for a test to find and ask the query. The server answers a repeated
#: text at once, so each text has its own number.
LONG = (
    f"SELECT n, count(*) FROM (SELECT a.k % 10 AS n, count(*) AS c FROM {MANY} AND a.k < {{}} GROUP BY a.k) g "
    "GROUP BY n ORDER BY n"
)
#: The same result from a third of the rows.
BRIEF = LONG.replace("(1, 3)", "(1, 1)")
#: The same result from a thousand times as many rows, which no test waits for: the query is cancelled.
ENDLESS = LONG.replace("(1, 3)", "(1, 3000)")
NUMBERS = itertools.count(1000)
SHORT = "SELECT n, count(*) FROM (SELECT k % 10 AS n, count(*) FROM t GROUP BY k) g GROUP BY n ORDER BY n"


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            client.execute("CREATE TABLE t (k int)")
            client.execute("INSERT INTO t SELECT g FROM generate_series(1, 350) g")
            client.execute("CREATE ROLE other LOGIN")
        yield server


class Running:
    """A query that runs in another thread; its outcome is rows or an error."""

    def __init__(self, server: Millstream, query: str, engine: str = "auto") -> None:
        self.connection = server.connect()
        self.connection.execute(f"SET separable = on; SET query_engine = {engine}".encode())
        self.pid = self.connection.info.backend_pid
        self.rows: list[Any] | None = None
        self.types: list[int] = []
        self.error: psycopg.Error | None = None
        self._work = Beside(lambda: self.connection.execute(query.encode()))

    def wait(self) -> None:
        try:
            found = self._work.result()
            self.types, self.rows = types(found), found.fetchall()
        except psycopg.Error as error:
            self.error = error
        self.connection.close()


def types(found: psycopg.Cursor[Any]) -> list[int]:
    """The oids of the types of a query's columns."""
    return [item.type_code for item in found.description or ()]


def is_running(client: psycopg.Connection[Any], pid: int) -> bool:
    found = client.execute("SELECT count(*) FROM millstream.queries WHERE pid = %s AND state = 'running'", (pid,))
    return found.fetchone() == (1,)


def begun(server: Millstream, client: psycopg.Connection[Any], engine: str = "auto", query: str = LONG) -> Running:
    """A query that runs, and waits where it could leave until it is asked."""
    assert not is_running(client, 0)  # the time of the first such look must not count as the query's time
    running = Running(server, f"{query.format(next(NUMBERS))} {HELD}", engine)
    wait_until(lambda: is_running(client, running.pid), 60, "the query")
    return running


@pytest.fixture
def client(server: Millstream) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as connection:
        yield connection


def suspended(server: Millstream, client: psycopg.Connection[Any], query: str = LONG) -> str:
    running = begun(server, client, query=query)
    ((query_id,),) = client.execute("SELECT millstream.suspend(%s)", (running.pid,)).fetchall()
    running.wait()
    assert running.error is not None
    assert running.error.sqlstate == "57014"
    assert running.error.diag.message_primary == f'query "{query_id}" was suspended'
    assert query_id in str(running.error.diag.message_hint)
    return str(query_id)


def test_a_query_goes_on_after_a_restart(server: Millstream) -> None:
    with server.connect() as client:
        wanted = client.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()
        query_id = suspended(server, client)
        ((pid, role, query, *sizes),) = client.execute(
            "SELECT pid, role, query, state, pipelines, finished, rows, bytes > 0 FROM millstream.queries"
        ).fetchall()
        assert (pid, role, query[:16], sizes) == (None, "millstream", LONG[:16], ["suspended", 3, 1, 350, True])
        client.execute("INSERT INTO t VALUES (1)")
    server.restart()
    with server.connect() as client:
        for query in ("SELECT * FROM millstream.resume('{}')", "SELECT n, count FROM millstream.resume('{}') AS rest"):
            found = client.execute(query.format(query_id).encode())
            assert found.fetchall() == wanted
            assert ([item.name for item in found.description or ()], types(found)) == (["n", "count"], [23, 20])
        client.execute("DELETE FROM t WHERE k = 1")
        client.execute("INSERT INTO t VALUES (1)")
        assert client.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        assert client.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (False,)
        with pytest.raises(psycopg.errors.UndefinedObject):
            client.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode())


def test_a_query_goes_on_after_a_checkpoint(server: Millstream, client: psycopg.Connection[Any]) -> None:
    wanted = client.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()
    running = begun(server, client)
    ((query_id,),) = client.execute("SELECT millstream.checkpoint(%s)", (running.pid,)).fetchall()
    running.wait()
    assert running.rows == wanted
    found = client.execute("SELECT count(*) FROM millstream.queries WHERE query_id = %s", (query_id,))
    assert found.fetchone() == (0,)


def test_which_roles_may(server: Millstream, client: psycopg.Connection[Any]) -> None:
    query_id = suspended(server, client)
    with psycopg.connect(server.dsn().replace("user=millstream", "user=other"), autocommit=True) as other:
        ((text,),) = other.execute("SELECT query FROM millstream.queries WHERE query_id = %s", (query_id,)).fetchall()
        assert text == "<insufficient privilege>"
        for statement in (f"SELECT * FROM millstream.resume('{query_id}')", f"SELECT millstream.forget('{query_id}')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(statement.encode())
        running = begun(server, client, query=ENDLESS)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("SELECT millstream.suspend(%s)", (running.pid,))
    client.execute("SELECT pg_cancel_backend(%s)", (running.pid,))
    running.wait()
    assert running.error is not None
    assert running.error.diag.message_primary == "canceling statement due to user request"
    assert client.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


def test_a_new_role_of_an_old_name(server: Millstream, client: psycopg.Connection[Any]) -> None:
    """The new role is a different one; the old role under a new name is the same."""
    client.execute("CREATE ROLE first LOGIN; GRANT SELECT ON t TO first")
    dsn = server.dsn().replace("user=millstream", "user={}")
    with psycopg.connect(dsn.format("first"), autocommit=True) as first:
        first.execute("SET separable = on")
        work = Beside(first.execute, f"{LONG.format(next(NUMBERS))} {HELD}".encode())
        wait_until(lambda: is_running(client, first.info.backend_pid), 60, "the query")
        ((query_id,),) = client.execute("SELECT millstream.suspend(%s)", (first.info.backend_pid,)).fetchall()
        assert isinstance(work.error(), psycopg.errors.QueryCanceled)
    resume = f"SELECT * FROM millstream.resume('{query_id}')".encode()
    seen = "SELECT role, query LIKE 'SELECT n%%' FROM millstream.queries WHERE query_id = %s"
    client.execute("ALTER ROLE first RENAME TO second; CREATE ROLE first LOGIN; GRANT SELECT ON t TO first")
    with psycopg.connect(dsn.format("first"), autocommit=True) as other:
        assert other.execute(seen, (query_id,)).fetchone() == ("second", False)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute(resume)
    with psycopg.connect(dsn.format("second"), autocommit=True) as second:
        assert second.execute(seen, (query_id,)).fetchone() == ("second", True)
        wanted = second.execute(resume).fetchall()
    client.execute("REVOKE ALL ON t FROM second; DROP ROLE second; CREATE ROLE second LOGIN")
    with psycopg.connect(dsn.format("second"), autocommit=True) as other:
        assert other.execute(seen, (query_id,)).fetchone() == (None, False)
        for statement in (resume, f"SELECT millstream.forget('{query_id}')".encode()):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(statement)
    assert client.execute(resume).fetchall() == wanted, "superusers may"
    assert client.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


def test_what_is_no_query_that_can_leave(client: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        client.execute("SELECT millstream.suspend(%s)", (client.info.backend_pid,))
    assert client.execute("SELECT millstream.suspend(NULL)").fetchone() == (None,)
    for call in ("millstream.suspend('a'::bytea)", "millstream.suspend()", "suspend(1)", "millstream.suspends(1)"):
        with pytest.raises(psycopg.errors.UndefinedFunction):
            client.execute(f"SELECT {call}".encode())


def test_explain_shows_pipelines(client: psycopg.Connection[Any]) -> None:
    def plan(query: str) -> list[str]:
        return [line for (line,) in client.execute(query.encode()).fetchall()]

    assert not any("Pipeline" in line for line in plan(f"EXPLAIN {SHORT}"))
    client.execute("SET separable = on")
    lines = plan(f"EXPLAIN {SHORT}")
    assert "Execution: pipeline by pipeline (separable = on)" in lines
    assert [line for line in lines if line.startswith("Pipeline")][-1] == "Pipeline result (result)"
    ((document,),) = client.execute(f"EXPLAIN (FORMAT JSON) {SHORT}".encode()).fetchall()
    (found,) = json.loads(document) if isinstance(document, str) else document
    assert [item["Name"] for item in found["Pipelines"]][-1] == "result"
    assert "Execution: whole (one pipeline)" in plan("EXPLAIN SELECT * FROM t")
    client.execute("SET separable = off")
    assert not any("Pipeline" in line for line in plan(f"EXPLAIN {SHORT}"))
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        client.execute("SET separable = maybe")
    assert client.execute("SHOW checkpoint_interval").fetchone() == ("0",)
    client.execute("SET checkpoint_interval = '90s'")
    assert client.execute("SHOW checkpoint_interval").fetchone() == ("90s",)


def test_a_cancelled_wait(server: Millstream, client: psycopg.Connection[Any]) -> None:
    running = begun(server, client, query=ENDLESS)
    with server.connect() as asking:
        asking.execute("SET statement_timeout = 20")
        with pytest.raises(psycopg.errors.QueryCanceled):
            asking.execute("SELECT millstream.suspend(%s)", (running.pid,))
    client.execute("SELECT pg_cancel_backend(%s)", (running.pid,))
    running.wait()


def test_progress_in_pg_stat_activity(server: Millstream, client: psycopg.Connection[Any]) -> None:
    """After PostgreSQL's own columns, and NULL for all other sessions."""
    shown = client.execute("SELECT * FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    names = [item.name for item in shown.description or ()]
    added = ["query_pipelines", "query_finished", "query_progress", "query_rows", "query_bytes", "query_seconds_left"]
    assert names[-7:] == ["backend_type", *added]
    (row,) = shown.fetchall()
    assert row[-6:] == (None,) * 6
    attributes = "SELECT attname FROM pg_attribute WHERE attrelid = 'pg_stat_activity'::regclass AND attnum > 0"
    assert [name for (name,) in client.execute(f"{attributes} ORDER BY attnum".encode())] == names
    running = begun(server, client, query=ENDLESS)
    query = f"SELECT state, {', '.join(added)} FROM pg_stat_activity WHERE pid = %s"
    found: list[Any] = []

    def is_measured() -> bool:
        found[:] = client.execute(query.encode(), (running.pid,)).fetchall()
        return found[0][3] != 0

    wait_until(is_measured, 60, "progress within the first pipeline")
    ((state, pipelines, finished, progress, *kept, left),) = found
    assert (state, pipelines, finished, kept) == ("active", 3, 0, [0, 0])
    assert 0 < progress < 1
    assert left > 0
    with psycopg.connect(server.dsn().replace("user=millstream", "user=other"), autocommit=True) as other:
        assert other.execute(query.encode(), (running.pid,)).fetchall() == [(None,) * 7]
    client.execute("SELECT pg_cancel_backend(%s)", (running.pid,))
    running.wait()
