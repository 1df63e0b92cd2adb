"""ALTER ROLE and ALTER DATABASE SET: the initial settings of sessions, unless the client sets others."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.server import Millstream

Client = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def owner(running: Millstream) -> Iterator[Client]:
    with running.connect() as client:
        client.autocommit = True
        client.execute("CREATE ROLE kept_role LOGIN")
        try:
            yield client
        finally:
            client.execute("ALTER DATABASE millstream RESET ALL")
            client.execute("ALTER ROLE ALL RESET ALL")
            client.execute("DROP ROLE kept_role")


def shown(running: Millstream, *names: str, options: str = "") -> list[object]:
    """Settings of a new session of the role."""
    with running.connect(user="kept_role", options=options) as client:
        return [value for name in names for (value,) in client.execute(f"SHOW {name}".encode())]


def test_a_session_begins_with_what_is_kept(running: Millstream, owner: Client) -> None:
    owner.execute("ALTER ROLE kept_role SET search_path = own, public")
    owner.execute("ALTER ROLE kept_role SET statement_timeout = '2s'")
    owner.execute("ALTER ROLE kept_role SET timezone = 'Europe/Berlin'")
    assert shown(running, "search_path", "statement_timeout", "TimeZone") == ["own, public", "2s", "Europe/Berlin"]
    assert shown(running, "statement_timeout", options="-c statement_timeout=3s") == ["3s"]
    with running.connect(user="kept_role") as client:
        client.execute("SET statement_timeout = '7s'; RESET statement_timeout")
        assert client.execute("SHOW statement_timeout").fetchone() == ("2s",)
    owner.execute("ALTER ROLE kept_role RESET statement_timeout")
    assert shown(running, "search_path", "statement_timeout") == ["own, public", "0"]


def test_the_nearest_counts(running: Millstream, owner: Client) -> None:
    owner.execute("ALTER ROLE ALL SET kept.own = 'one'")
    assert shown(running, "kept.own") == ["one"]
    owner.execute("ALTER DATABASE millstream SET kept.own = 'two'")
    assert shown(running, "kept.own") == ["two"]
    owner.execute("ALTER ROLE kept_role SET kept.own = 'three'")
    assert shown(running, "kept.own") == ["three"]
    owner.execute("ALTER ROLE kept_role IN DATABASE millstream SET kept.own = 'four'")
    assert shown(running, "kept.own") == ["four"]
    kept = "pg_db_role_setting WHERE setconfig::text LIKE '%kept.own%'"
    rows = f"SELECT setdatabase <> 0, setrole <> 0, setconfig FROM {kept} ORDER BY 1, 2".encode()
    assert owner.execute(rows).fetchall() == [
        (False, False, ["kept.own=one"]),
        (False, True, ["kept.own=three"]),
        (True, False, ["kept.own=two"]),
        (True, True, ["kept.own=four"]),
    ]


def test_what_is_no_setting_is_refused(owner: Client) -> None:
    for text, state in (
        ("ALTER ROLE kept_role SET nonsense = 1", "42704"),
        ("ALTER ROLE kept_role SET role = 'millstream'", "0A000"),
        ("ALTER ROLE kept_role SET lock_timeout FROM CURRENT", "0A000"),
        ("ALTER DATABASE millstream SET server_version = '1'", "55P02"),
    ):
        with pytest.raises(psycopg.Error) as raised:
            owner.execute(text.encode())
        assert raised.value.sqlstate == state, text
