"""``statement_length``: the limit of a statement's length, independent of the texts that definitions store."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow


def test_statements_up_to_the_length_that_is_set() -> None:
    with Millstream(settings={"statement_length": 1_200_000, "spark_enabled": False}) as server:
        text = "x" * 800_000
        with server.connect() as client:
            client.execute(f"CREATE VIEW long AS SELECT '{text}' AS t".encode())
            assert client.execute("SELECT length(t) FROM long").fetchone() == (800_000,)
            with pytest.raises(psycopg.Error) as caught:
                client.execute(f"SELECT '{text * 2}'".encode())
            assert caught.value.sqlstate == "54000"
        server.restart()
        with server.connect() as client:
            assert client.execute("SELECT length(t) FROM long").fetchone() == (800_000,)
            sums = "1" + "+1" * 150_000
            with pytest.raises(psycopg.Error) as caught:
                client.execute(f"SELECT {sums}".encode())
            assert caught.value.sqlstate == "54001"
            assert client.execute("SELECT 1").fetchone() == (1,)
