"""Writers wait while views lag too far behind: at the socket, cancellably, and until the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside, at_once
from tests.rig.process import wait_until
from tests.rig.server import Millstream

SETTINGS = {
    "maintenance_engine": "embedded",
    "spark_enabled": False,
    "backlog_bytes": 10_000,
    "maintenance_rows": 1_000_000_000,
    "maintenance_idle": 1_000_000,
}
BLOCK = b"1\t1\n" * 50_000


def define(client: psycopg.Connection[Any]) -> None:
    """A stream and its view."""
    client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
    client.execute("CREATE VIEW v AS SELECT k, sum(n) AS n, count(*) AS rows FROM s GROUP BY k")


def copy(client: psycopg.Connection[Any], blocks: int) -> None:
    """A COPY of this many blocks, each in its own CopyData."""
    with client.cursor().copy("COPY s FROM STDIN") as target:
        for _ in range(blocks):
            target.write(BLOCK)


@pytest.mark.slow
def test_many_writers_get_through_a_small_budget() -> None:
    """Only back-pressure makes the view due here, so this would hang if a waiting writer blocked maintenance."""
    with Millstream(settings=SETTINGS) as server, server.connect() as client:
        define(client)
        rounds: list[int] = []

        def write() -> None:
            with server.connect() as own:
                while len(rounds) < 9 or ('a writer of stream "s" waits' not in server.log() and len(rounds) < 900):
                    rounds.append(1)
                    copy(own, 2)
                    own.execute("INSERT INTO s VALUES (1, 1)")
                    own.execute("INSERT INTO s VALUES (%s, 1)", (1,))

        at_once([write] * 3)
        rows = len(rounds) * (2 * 50_000 + 2)
        assert client.execute("SELECT n, rows FROM v").fetchall() == [(rows, rows)]
        assert 'a writer of stream "s" waits' in server.log()


@pytest.mark.slow
def test_a_waiting_copy_is_not_read_and_can_be_cancelled(tmp_path: Path) -> None:
    with Millstream(tmp_path / "data", SETTINGS) as server, server.connect() as client, server.connect() as other:
        define(client)
        (state,) = (path for path in (tmp_path / "data/shared/state").iterdir() if "static" not in path.name)
        state.rename(tmp_path / "aside")  # so that nothing can be committed
        copy(client, 1)

        def waiting() -> bool:
            return other.execute("SELECT writers_waiting FROM millstream.streams").fetchone() == (1,)

        def cancel() -> None:
            wait_until(waiting, 60, "COPY that waits")
            client.cancel_safe()

        canceller = Beside(cancel)
        with pytest.raises(psycopg.errors.QueryCanceled):
            copy(client, 1000)
        canceller.result()
        assert not waiting()
        client.execute("SET statement_timeout = '100ms'")
        for _ in range(2):  # planned the first time, without the planner the second time
            with pytest.raises(psycopg.errors.QueryCanceled):
                client.execute("INSERT INTO s VALUES (1, 1)")
        assert other.execute("SELECT rows FROM v").fetchall() == [(50_000,)]
        failed = "SELECT count(*) > 0 FROM millstream.jobs WHERE status = 'failed'"
        wait_until(lambda: other.execute(failed).fetchone() == (True,), 60, "job that failed")
