"""Temporary relations and search_path of real sessions: one session's cached results never answer another session."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.server import Millstream


@pytest.mark.slow
def test_cached_answers_mind_the_search_path_and_temporary_tables() -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as one, server.connect() as two:
            one.execute("CREATE TABLE t (a int)")
            one.execute("INSERT INTO t VALUES (1)")
            one.execute("CREATE SCHEMA s")
            one.execute("CREATE TABLE s.t (a int)")
            one.execute("INSERT INTO s.t VALUES (2)")
            for _ in range(3):
                assert _answers(one) == _answers(two) == [1, 1, 1]
            two.execute("CREATE TEMP TABLE t (a int)")
            two.execute("INSERT INTO t VALUES (3)")
            one.execute("SET search_path = s, public")
            for _ in range(3):
                assert _answers(one) == [2, 2, 2]
                assert _answers(two) == [3, 3, 3]
            two.execute("UPDATE t SET a = 4")
            one.execute("RESET search_path")
            for _ in range(3):
                assert _answers(one) == [1, 1, 1]
                assert _answers(two) == [4, 4, 4]
            with two.transaction():
                two.execute("SET LOCAL search_path = s, pg_temp")
                assert _answers(two) == [2, 2, 2]
            two.execute("DISCARD TEMP")
            assert _answers(two) == [1, 1, 1]
            two.execute("CREATE TEMP TABLE t (a int)")
            server.kill9()
        server.start()
        with server.connect() as one:
            assert _answers(one) == [1, 1, 1]


def _answers(connection: psycopg.Connection[tuple[object, ...]]) -> list[object]:
    """One read in both protocols, and prepared."""
    found = [
        connection.execute("SELECT a FROM t").fetchone(),
        connection.execute("SELECT a FROM t WHERE a > %s", (0,)).fetchone(),
        connection.execute("SELECT a FROM t WHERE a >= %s", (0,), prepare=True).fetchone(),
    ]
    return [None if row is None else row[0] for row in found]
