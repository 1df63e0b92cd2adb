"""The law for the first rows of a stream and of each of its keys, sorted by every type in both directions."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tests.rig.mirror import mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: Columns with their possible values.
_COLUMNS = {
    "k": ("integer", (1, 2, None)),
    "i": ("bigint", (-(2**63), -1, 0, 2**63 - 1, None)),
    "n": ("numeric(6, 2)", ("-1.50", "0.00", "7.25", None)),
    "b": ("boolean", (True, False, None)),
    "d": ("date", ("1999-12-31", "2000-01-01", "2024-02-29", None)),
    "t": ("timestamp", ("1999-12-31 23:59:59.999999", "2000-01-01 00:00:00", "2024-02-29 12:00:00", None)),
    "z": ("timestamptz", ("1999-12-31 23:59:59.999999+00", "2024-03-31 01:30:00+02", None)),
    "w": ("text", ("", "a", "B", "é", None)),
    "f": ("double precision", (-1.5, 0.0, float("inf"), float("nan"), None)),
}
_WAYS = [" ".join(words) for words in product(("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST"))]


def _query(source: random.Random) -> str:
    """A query that sorts by all columns, so that rows that tie are equal; texts and doubles are sorted in one
    direction."""
    names = source.sample([name for name in _COLUMNS if name != "k"], len(_COLUMNS) - 1)
    one_way = source.choice(("ASC", "DESC"))
    nulls = (source.choice(("NULLS FIRST", "NULLS LAST")) for _ in names)
    ways = (
        f"{one_way} {null}" if name in "wf" else source.choice(_WAYS) for name, null in zip(names, nulls, strict=True)
    )
    order = ", ".join(f"{name} {way}" for name, way in zip(names, ways, strict=True))
    partition = source.choice(("PARTITION BY k", "PARTITION BY k", "PARTITION BY b, k", ""))
    numbered = f"SELECT *, row_number() OVER ({partition} ORDER BY {order}, k) AS r FROM s"
    return source.choice(
        (
            f"SELECT DISTINCT ON (k) * FROM s ORDER BY k, {order}",
            f"SELECT k, i, n, b, d, t, z, w, f FROM ({numbered}) q WHERE r = 1",
            f"SELECT k, i, n, b, d, t, z, w, f, r FROM ({numbered}) q WHERE r <= {source.randint(2, 4)} AND i < 5",
            f"SELECT * FROM s ORDER BY {order}, k LIMIT {source.randint(1, 5)} OFFSET {source.randint(0, 2)}",
            f"SELECT k, count(*), max(n), min(i) FROM (SELECT * FROM s ORDER BY {order}, k LIMIT 4) q GROUP BY k",
            "SELECT count(*), sum(c) FROM (SELECT d, count(*) AS c FROM s GROUP BY d ORDER BY c DESC, d LIMIT 2) q",
        )
    )


def _play(source: random.Random, engine: str, postgres: Postgres, steps: int) -> None:
    settings = {"maintenance_engine": engine, "spark_enabled": engine != "embedded", "maintenance_rows": 20}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        mirror.stream("s", ", ".join(f"{name} {kind}" for name, (kind, _) in _COLUMNS.items()))
        for number in range(16):
            mirror.view(f"first{number}", _query(source))
        for step in range(steps):
            size = source.choice((1, 3, 30))
            rows = [tuple(source.choice(values) for _, values in _COLUMNS.values()) for _ in range(size)]
            mirror.insert("s", rows, one_statement=source.random() < 0.5)
            if step == steps // 2:
                mirror.restart(crash=True)
            mirror.check()


@pytest.mark.parametrize("seed", sample(range(2), range(1)))
def test_first_rows_by_any_order(seed: int, postgres: Postgres, whole: bool) -> None:
    _play(random.Random(seed), "embedded", postgres, 12 if whole else 6)


@pytest.mark.spark
@pytest.mark.whole
def test_first_rows_on_spark(postgres: Postgres) -> None:
    _play(random.Random(2), "spark", postgres, 12)
