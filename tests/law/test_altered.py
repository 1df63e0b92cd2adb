"""Continuous views equal PostgreSQL's answers while their stream's columns are added and dropped and the server dies.

In PostgreSQL the stream is a table, and a view that was created after a column counts the rows since then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream, java_is_there

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: Columns to add, with their defaults, and values for them.
COMING = {
    "a": ("integer NOT NULL DEFAULT 3", ("1", "2", "DEFAULT")),
    "b": ("text", ("'x'", "NULL", "DEFAULT")),
    "c": ("numeric(8,2) DEFAULT 1.5", ("2.25", "NULL", "DEFAULT")),
    "d": ("boolean DEFAULT true", ("false", "NULL", "DEFAULT")),
}


@pytest.fixture
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = request.param
    if engine == "spark" and not java_is_there():
        pytest.skip("needs Java")
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 20}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("s", "n integer, k integer, v integer")
        pair.view("base", "SELECT k, count(*), sum(v), array_agg(n ORDER BY n) FROM s GROUP BY k")
        yield pair


@pytest.mark.parametrize("mirror", ENGINES, indirect=True)
def test_views_of_a_stream_whose_columns_change(mirror: Mirror) -> None:
    source = random.Random(3)
    there: list[str] = []
    for step in range(10):
        _insert(mirror, there, source)
        coming = [name for name in COMING if name not in there]
        if coming and (step % 3 or not there):
            there.append(coming[0])
            _alter(mirror, f"ADD COLUMN {coming[0]} {COMING[coming[0]][0]}")
            name = f"with_{coming[0]}_{step}"
            text = f"SELECT {coming[0]}, k, count(*), max(n) FROM s {{}} GROUP BY 1, 2"
            mirror.view(name, text.format(""), text.format(f"WHERE n >= {mirror.acknowledged}"))
        elif there:
            gone = there.pop(source.randrange(len(there)))
            for name in [name for name in mirror.views if name.startswith(f"with_{gone}")]:
                del mirror.views[name]
                mirror.client.execute(f"DROP VIEW {name}".encode())
            _alter(mirror, f"DROP COLUMN {gone}")
        _insert(mirror, there, source)
        mirror.check()
        if step in (3, 7):
            mirror.restart(crash=step == 7)
            mirror.check()
    _insert(mirror, there, source)  # not read, so that background maintenance has them
    wait_until(lambda: max(map(mirror.jobs, ("spark", "embedded"))) > 0, 120, "a job")
    mirror.check()


def _alter(mirror: Mirror, action: str) -> None:
    mirror.client.execute(f"ALTER FOREIGN TABLE s {action}".encode())
    mirror.judge.execute(f"ALTER TABLE s {action}".encode())


def _insert(mirror: Mirror, there: list[str], source: random.Random) -> None:
    """Inserts rows by INSERT and by COPY, with consecutive numbers."""
    for kind in ("insert", "copy"):
        rows = [
            [str(mirror.acknowledged + place), str(source.randint(1, 4)), str(source.randint(-9, 9))]
            for place in range(source.choice((1, 3, 30)))
        ]
        if kind == "copy":
            mirror.copy("s (n, k, v)", "".join(",".join(row) + "\n" for row in rows).encode())
            continue
        columns = ", ".join(("n", "k", "v", *there))
        values = ", ".join(
            f"({', '.join([*row, *(source.choice(COMING[name][1]) for name in there)])})" for row in rows
        )
        for connection in (mirror.client, mirror.judge):
            connection.execute(f"INSERT INTO s ({columns}) VALUES {values}".encode())
        mirror.acknowledged += len(rows)
