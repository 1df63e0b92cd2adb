"""Continuous views over several streams, with enums, between servers as processes: under COPY, and with kill -9."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.server.cluster import server
from tests.server.test_cluster_views import Writer, migrate, placed

pytestmark = pytest.mark.slow

SETUP = """
    CREATE TYPE parity AS ENUM ('even', 'odd');
    CREATE FOREIGN TABLE s (p parity, n bigint) SERVER stream;
    CREATE FOREIGN TABLE r (p parity, n bigint) SERVER stream;
    CREATE VIEW v AS SELECT p, c, x.n, d, y.n AS m FROM (SELECT p, count(*) AS c, sum(n) AS n FROM s GROUP BY p) x
        JOIN (SELECT p, count(*) AS d, sum(n) AS n FROM r GROUP BY p) y USING (p)
"""
PARITY = ("even", "odd")


class Both(Writer):
    """Inserts consecutive numbers into two streams, each in one transaction."""

    def copy(self, rows: int) -> None:
        """Copies in one transaction."""
        text = "".join(f"{PARITY[n % 2]}\t{n}\n" for n in range(self.done, self.done + rows))
        with self._client.transaction():
            for stream in "sr":
                with self._client.cursor().copy(f"COPY {stream} FROM STDIN") as copy:
                    copy.write(text)
        self.done += rows


def require(client: psycopg.Connection, least: int, is_all: bool = False) -> None:
    """Checks that both streams' rows are visible up to the same number, each once."""
    found = client.execute("SELECT p::text, c, n, d, m FROM v ORDER BY v.p").fetchall()
    assert [row[0] for row in found] == list(PARITY)
    for place, (_, count, total, *other) in enumerate(found):
        assert [count, total] == other
        assert total == count * (count - 1) + place * count
        assert count >= least // 2
        assert not is_all or count == least // 2


def test_they_migrate_under_copy(tmp_path: Path) -> None:
    with (
        server(tmp_path, "a") as a,
        server(tmp_path, "b") as b,
        a.connect() as writing,
        a.connect() as at_a,
        b.connect() as at_b,
    ):
        at_a.execute(SETUP)
        Both(writing).copy(500)
        with Both(writing, 500) as writer:
            for _ in range(2):
                migrate(at_a, "b")
                for reading in (at_b, at_a, at_b):
                    require(reading, writer.done)
                migrate(at_b, "a")
                require(at_a, writer.done)
        require(at_a, writer.done, is_all=True)


@pytest.mark.parametrize(("failpoint", "dies"), [("view-given", "a"), ("view-begun", "b")])
def test_one_dies(failpoint: str, dies: str, tmp_path: Path) -> None:
    with server(tmp_path, "a") as a, server(tmp_path, "b") as b:
        dying = a if dies == "a" else b
        with a.connect() as client:
            client.execute(SETUP)
            Both(client).copy(1000)
        dying.environment = {VARIABLE: failpoint}
        dying.restart()
        with a.connect() as client:
            asking = Beside(migrate, client, "b")
            assert dying.wait(60) == -signal.SIGKILL
            dying.environment = {}
            dying.restart()
            assert isinstance(asking.error(), psycopg.OperationalError if dying is a else type(None))
        with a.connect() as at_a, b.connect() as at_b:
            wait_until(lambda: placed(at_b) == ("b",), 60, "the view at its owner")
            writer = Both(at_a, 1000)
            writer.copy(1000)
            require(at_b, writer.done, is_all=True)
            migrate(at_b, "a")
            writer.copy(1000)
            require(at_a, writer.done, is_all=True)
