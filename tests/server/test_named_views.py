"""millstream.suspend('view'), resume('view') and checkpoint('view') with real clients: the meaning of names,
privileges, and kill -9 at every step."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.process import wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import expire, server
from tests.server.test_cluster_views import SETUP, Writer, placed, require, state_of

Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def objects(running: Millstream) -> Iterator[None]:
    with running.connect() as client:
        client.execute(
            """
            CREATE FOREIGN TABLE feed (k int, n int) SERVER stream;
            CREATE SCHEMA one; CREATE SCHEMA "Two";
            CREATE VIEW held AS SELECT k, sum(n) AS n FROM feed GROUP BY k;
            CREATE VIEW one.held AS SELECT count(*) AS n FROM feed;
            CREATE VIEW "Two"."O'Held" AS SELECT max(n) AS n FROM feed;
            CREATE VIEW plain AS SELECT 1 AS one;
            CREATE TABLE kept (a int);
            CREATE ROLE stranger LOGIN;
            GRANT SELECT ON held TO stranger
            """
        )
        yield
        client.execute('DROP VIEW one.held, "Two"."O\'Held", held, plain; DROP SCHEMA one, "Two"; DROP ROLE stranger')


@pytest.mark.parametrize(
    "name, shown",
    [
        ("held", "held"),
        ("HELD", "held"),
        ("public.held", "held"),
        ('"public"."held"', "held"),
        ("one.held", "one.held"),
        ('"Two"."O\'Held"', '"Two"."O\'Held"'),
    ],
)
def test_names(name: str, shown: str, sql: Client, objects: None) -> None:
    sql.execute("INSERT INTO feed VALUES (1, 1)")
    wanted = sql.execute(f"SELECT * FROM {name}".encode()).fetchall()
    assert sql.execute("SELECT millstream.suspend(%s)", (name,)).fetchone() == (shown,)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is suspended") as raised:
        sql.execute(f"SELECT * FROM {name}".encode())
    others = "SELECT count(*) FROM millstream.views WHERE server IS NULL"
    assert sql.execute(others).fetchone() == (1,)
    hint = str(raised.value.diag.message_hint)
    assert sql.execute(hint.removesuffix(" continues it.").encode()).fetchone() == (shown,)
    assert sql.execute(f"SELECT * FROM {name}".encode()).fetchall() == wanted


def test_the_search_path(sql: Client, objects: None) -> None:
    sql.execute("SET search_path = one, public")
    assert sql.execute("SELECT millstream.suspend('held')").fetchone() == ("one.held",)
    assert sql.execute("SELECT millstream.resume(%s)", ("held",), prepare=True).fetchone() == ("one.held",)
    assert sql.execute("SELECT millstream.suspend(NULL::text), millstream.resume(NULL)").fetchone() == (None, None)
    nothing = "SELECT millstream.migrate('held', NULL), millstream.migrate(NULL, 'b'), millstream.migrate(1, NULL)"
    assert sql.execute(nothing).fetchone() == (None, None, None)


@pytest.mark.parametrize("function", ["suspend", "resume", "checkpoint", "forget"])
@pytest.mark.parametrize(
    "name, sqlstate",
    [
        ("plain", "42809"),
        ("kept", "42809"),
        ("feed", "42809"),
        ("pg_class", "42809"),
        ("none", "42P01"),
        ("one.none", "42P01"),
        ("none.held", "3F000"),
        ("a b", "42602"),
        ("", "42602"),
        ("a.b.c.d", "42601"),
    ],
)
def test_what_is_no_view_of_its_own(function: str, name: str, sqlstate: str, sql: Client, objects: None) -> None:
    with pytest.raises(psycopg.Error) as raised:
        sql.execute(f"SELECT millstream.{function}(%s)".encode(), (name,))
    assert raised.value.sqlstate == sqlstate


def test_which_roles_may(running: Millstream, sql: Client, objects: None) -> None:
    with psycopg.connect(running.dsn().replace("user=millstream", "user=stranger"), autocommit=True) as stranger:
        for function in ("suspend", "checkpoint", "resume", "forget"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of view held"):
                stranger.execute(f"SELECT millstream.{function}('held')".encode())


def test_numbers_are_sessions(sql: Client) -> None:
    """Numbers as literals and as parameters of unknown type, which were session numbers before names were accepted."""
    for number in ("'1'", "1"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="process 1 runs no query"):
            sql.execute(f"SELECT millstream.suspend({number})".encode())


def test_what_is_not_suspended(sql: Client, objects: None) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='view "held" is not suspended'):
        sql.execute("SELECT millstream.resume('held')")
    with pytest.raises(psycopg.errors.UndefinedTable) as raised:
        sql.execute("SELECT millstream.resume('5ac1e4f82183d92d')")
    assert "FROM millstream.resume('5ac1e4f82183d92d')" in str(raised.value.diag.message_hint)
    assert sql.execute("SELECT millstream.forget('held')").fetchone() == (False,)
    assert sql.execute("SELECT millstream.checkpoint('held'), millstream.forget('held')").fetchone() == ("held", True)


# -- with kill -9 ------------------------------------------------------------------------------------------------------


def asked(client: Client, function: str) -> None:
    """A call during which a server may die."""
    with contextlib.suppress(psycopg.OperationalError):
        client.execute(f"SELECT millstream.{function}('v')".encode())


def again(running: Millstream, failpoint: str = "") -> None:
    running.environment = {VARIABLE: failpoint}
    running.restart()


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("failpoint", ["view-files", "view-written", "view-suspended"])
def test_the_suspending_server_dies(failpoint: str, tmp_path: Path) -> None:
    with server(tmp_path, "a") as a:
        with a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
        again(a, failpoint)
        with a.connect() as client:
            asked(client, "suspend")
        assert a.wait(60) == -signal.SIGKILL
        again(a)
        with a.connect() as client:
            writer = Writer(client, writer.done)
            writer.copy(1000)
            if failpoint == "view-suspended":
                assert placed(client) == (None,)
                asked(client, "resume")
            require(client, writer.done)


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("failpoint", ["view-resumed", "view-seen", "view-back", "view-begun"])
def test_the_resuming_server_dies(failpoint: str, tmp_path: Path, whole: bool) -> None:
    """The view continues once the server is back; elsewhere, ``view-back`` is not reached. One step is a sample."""
    places = {"view-back": ("a",), "view-resumed": ("a", "b"), "view-seen": ("b", "a"), "view-begun": ("b", "a")}
    for name in places[failpoint] if whole else places[failpoint][:1]:
        with server(tmp_path / name, "a") as a, server(tmp_path / name, "b") as b, a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            client.execute("SELECT millstream.suspend('v')")
            writer.copy(1000)
            heir = {"a": a, "b": b}[name]
            again(heir, failpoint)
            with heir.connect() as asking:
                asked(asking, "resume")
            assert heir.wait(60) == -signal.SIGKILL
            again(heir)
            with a.connect() as at_home, heir.connect() as there:
                writer = Writer(at_home, writer.done)
                writer.copy(1000)
                wait_until(lambda: placed(there) == (name,), 60, "the view")  # noqa: B023
                require(there, writer.done)
                require(at_home, writer.done)


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("failpoint", ["", "view-written", "view-copied", "view-kept"])
def test_a_copied_views_home_dies(failpoint: str, tmp_path: Path) -> None:
    """Another server continues the view if there is a copy; its home has it at once after its return, or later."""
    with together(server(tmp_path, "a", failpoint=failpoint), server(tmp_path, "b")) as (a, b):
        with a.connect() as client, contextlib.suppress(psycopg.OperationalError):
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            client.execute("SELECT millstream.checkpoint('v')")
            writer.copy(1000)
            client.execute("SELECT millstream.checkpoint('v')")
        if failpoint:
            assert a.wait(60) == -signal.SIGKILL
        else:
            a.kill9()
        expire(tmp_path, "a")
        with b.connect() as there:
            if failpoint == "view-written":
                wait_until(lambda: state_of(there, "a") == ("lost",), 60, "the end of the lease")
                assert placed(there) is None
            else:
                wait_until(lambda: placed(there) == ("b",), 60, "the take-over")
                require(there, 1000, 2000)
            again(a)
            with a.connect() as client:
                ((rows,),) = client.execute("SELECT sum(c)::bigint FROM v").fetchall()
                assert rows in (1000, 2000)
                writer = Writer(client, rows)
                writer.copy(1000)
                require(client, writer.done)
