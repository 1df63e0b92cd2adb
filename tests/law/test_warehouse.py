"""The law on a warehouse: fifty-odd materialized views in three layers over a brokerage's raw sources.

Bronze views parse texts, silver views make histories, look-ups by interval, keys and latest states, and gold views read
them (tests/sql/warehouse). Some sources are streams, the others tables. A history comes first, then two batches with
corrections of what earlier ones said, then single changes; the server is killed in between. PostgreSQL has the same
statements, with tables for streams, and refreshes its views before each comparison.

It takes a minute of processor time, so that it runs with ``--whole`` only.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest
from psycopg.types.string import TextLoader

from tests.rig.brokerage import BATCHES, LAYERS, STREAMS, TABLES, Brokerage, lines, warehouse
from tests.rig.mirror import Mirror
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

#: What CREATE says before a view's query, by method; most views choose by cost.
METHODS: Final = (
    "",
    "",
    *(f"WITH (method = '{name}')" for name in ("incremental", "delta", "higher_order", "recompute")),
)
CHANGES: Final = 4


@contextmanager
def _warehouse(server: Millstream, postgres: Postgres, drawn: random.Random) -> Iterator[Mirror]:
    """The views over sources without rows, on both, with random methods. PostgreSQL has a database for them."""
    name = f"warehouse_{uuid.uuid4().hex}"
    with postgres.connect() as owner:
        owner.execute(f"CREATE DATABASE {name}".encode())
        try:
            with psycopg.connect(postgres.dsn(name), autocommit=True) as judge:
                mirror = Mirror(server, judge)
                _create(mirror, drawn)
                yield mirror
                mirror.client.close()
        finally:
            owner.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _create(mirror: Mirror, drawn: random.Random) -> None:
    for schema in ("raw", *LAYERS):
        mirror.both(f"CREATE SCHEMA {schema}")
    for name, columns in TABLES.items():
        mirror.table(f"raw.{name}", columns)
    for name, columns in STREAMS.items():
        mirror.stream(f"raw.{name}", columns)
    for name, query in warehouse().items():
        mirror.client.execute(f"CREATE MATERIALIZED VIEW {name} {drawn.choice(METHODS)} AS {query}".encode())
        mirror.judge.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
        mirror.views[name] = f"TABLE {name}"


def _load(mirror: Mirror, brokerage: Brokerage, batch: int) -> None:
    for statement in brokerage.corrections(batch) if batch > 1 else ():
        mirror.both(statement)
    for name, rows in brokerage.batch(batch).items():
        mirror.copy(f"raw.{name}", lines(rows))


def _check(mirror: Mirror) -> None:
    for connection in (mirror.client, mirror.judge):
        connection.adapters.register_loader("timestamp", TextLoader)  # infinity is no datetime
    for name in mirror.views:
        mirror.judge.execute(f"REFRESH MATERIALIZED VIEW {name}".encode())
    mirror.check()


@pytest.mark.parametrize(("seed", "scale"), sample([(1, 1), (2, 1), (3, 4)], ()))
def test_all_layers_equal_their_queries(seed: int, scale: int, postgres: Postgres) -> None:
    drawn, brokerage = random.Random(seed), Brokerage(seed, scale)
    with Millstream(settings={"spark_enabled": False}) as server, _warehouse(server, postgres, drawn) as mirror:
        for batch in BATCHES:
            _load(mirror, brokerage, batch)
            if batch == 2:
                mirror.restart(crash=True)
            _check(mirror)
        for _ in range(CHANGES * scale):
            mirror.both(brokerage.change())
            _check(mirror)
