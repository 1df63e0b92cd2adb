"""What definitions cost: tables, indexes and columns that come and go, and what a framework asks after each.

In a database of a hundred tables, as an application has them. Each definition is committed and durable on both sides.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

import sqlalchemy as sa

from bench.client import Client
from bench.harness import Rig, Row, connect
from tests.rig.postgres import Postgres
from tests.rig.server import DATABASE, USER, Millstream

TITLE = "Definitions, milliseconds"
#: Tables that are there meanwhile.
TABLES: Final = 100
#: Pairs of definitions of one measurement.
PAIRS: Final = 30
#: What a framework makes, reflects and drops.
MODELS: Final = 20
COLUMNS: Final = "id serial PRIMARY KEY, name varchar(40) NOT NULL UNIQUE, price numeric(10, 2), made timestamptz"
CASES: Final = {
    "CREATE TABLE, DROP TABLE": (f"CREATE TABLE made ({COLUMNS})", "DROP TABLE made"),
    "CREATE INDEX, DROP INDEX": ("CREATE INDEX made ON there (price, made)", "DROP INDEX made"),
    "ADD COLUMN, DROP COLUMN": ("ALTER TABLE there ADD COLUMN more text", "ALTER TABLE there DROP COLUMN more"),
}
AIM: Final = 0.5


def run(rig: Rig) -> list[Row]:
    """Peers take turns for each case."""
    rows = []
    with rig.millstream() as server:
        peers = (server, rig.postgres)
        for peer in peers:
            with connect(peer) as client:
                prepare(client)
        for case, (make, unmake) in CASES.items():
            found = [[pairs(peer, make, unmake) for peer in peers] for _ in range(rig.rounds)]
            rows.append(_row(case, found))
        found = [[framework(peer) for peer in peers] for _ in range(rig.rounds)]
        rows.append(_row(f"SQLAlchemy creates, reflects and drops {MODELS} tables", found))
    return rows


def prepare(client: Client) -> None:
    """The tables that are there meanwhile."""
    for place in range(TABLES):
        client.query(f"DROP TABLE IF EXISTS there{place}; CREATE TABLE there{place} ({COLUMNS})")
    client.query(f"DROP TABLE IF EXISTS there; CREATE TABLE there ({COLUMNS})")
    client.query("INSERT INTO there (name, price) SELECT i::text, i FROM generate_series(1, 1000) AS g (i)")


def pairs(peer: Millstream | Postgres, make: str, unmake: str) -> float:
    """Milliseconds of a definition and of its undoing, together."""
    with connect(peer) as client:
        started = time.perf_counter()
        for _ in range(PAIRS):
            client.query(make)
            client.query(unmake)
        return (time.perf_counter() - started) * 1000 / PAIRS


def framework(peer: Millstream | Postgres) -> float:
    """Milliseconds in which SQLAlchemy makes tables that refer to each other, reads them back and drops them."""
    user, database = (USER, DATABASE) if isinstance(peer, Millstream) else ("postgres", "postgres")
    engine = sa.create_engine(f"postgresql+psycopg://{user}@127.0.0.1:{peer.port}/{database}")
    models = sa.MetaData(schema="shop")
    for place in range(MODELS):
        above = [sa.ForeignKey(f"shop.model{place - 1}.id")] if place else []
        sa.Table(
            f"model{place}",
            models,
            sa.Column("id", sa.Integer, *above, primary_key=True),
            sa.Column("name", sa.String(40), nullable=False, index=True),
            sa.Column("price", sa.Numeric(10, 2)),
        )
    with engine.begin() as client:
        client.execute(sa.text("CREATE SCHEMA IF NOT EXISTS shop"))
    started = time.perf_counter()
    models.create_all(engine)
    found = sa.MetaData()
    found.reflect(engine, schema="shop")
    assert len(found.tables) == MODELS
    models.drop_all(engine)
    spent = (time.perf_counter() - started) * 1000
    engine.dispose()
    return spent


def _row(case: str, found: list[list[float]]) -> Row:
    ours, theirs = zip(*found, strict=True)
    figures = statistics.median(ours), statistics.median(theirs)
    return Row(case, figures[0], "ms", figures[1], "PostgreSQL", AIM, "half as fast", "less", tuple(ours))
