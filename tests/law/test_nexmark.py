"""The law on the queries of Nexmark (tests/sql/nexmark), with its three relations as streams and as tables.

As streams, the queries are continuous views, read at random moments of a load of random pieces, with a crash in
between. The pieces of the relations come in random order, so that bids may precede their auctions. As tables, the
queries are materialized views that follow inserts, updates and deletes.

``--whole`` runs all queries on each engine, and more sequences of changes; else the embedded engine has the views,
since TPC-H's are enough for Spark (``test_tpch_views``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.rig.benchmarks import queries
from tests.rig.mirror import Mirror, cut, mirrored, parse
from tests.rig.nexmark import EPOCH, FILL_SIDE, FIRST, RELATIONS, SIDE, Nexmark
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

TEXTS: Final = {path.stem: path.read_text(encoding="utf-8") for path in queries("nexmark")}
EVENTS: Final = Nexmark(day=1000)
#: Events of a stream's load, and of the tables at first.
STREAMED: Final = 4_000
STORED: Final = 1_000
PIECES: Final = 3
STEPS: Final = 10
#: As a materialized view: refused if a part of it would be computed at each read.
FOLLOWS: Final = "WITH (method = 'incremental', refresh_policy = 'incremental')"


def test_continuous_views_equal_the_queries(postgres: Postgres) -> None:
    _run("embedded", tuple(TEXTS), postgres)


@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_all_continuous_views_on_every_engine(engine: str, postgres: Postgres) -> None:
    _run(engine, tuple(TEXTS), postgres)


@pytest.mark.parametrize("seed", sample(range(6), {0}))
def test_materialized_views_follow_changes(seed: int, postgres: Postgres, whole: bool) -> None:
    source = random.Random(seed)
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as mirror:
        for relation, columns in RELATIONS.items():
            mirror.table(relation, columns)
        _side(mirror)
        _store(mirror, 0, STORED)
        for name, text in TEXTS.items():
            mirror.client.execute(f"CREATE MATERIALIZED VIEW {name} {FOLLOWS} AS {text}".encode())
            mirror.views[name] = text
        mirror.check()
        loaded = STORED
        steps = STEPS if whole else STEPS // 2
        for step in range(steps):
            loaded = _change(mirror, source, loaded)
            if step == steps // 2:
                mirror.restart(crash=source.random() < 0.5)
            mirror.check(*source.sample(list(TEXTS), 6))
        mirror.check()


def _run(engine: str, names: Sequence[str], postgres: Postgres) -> None:
    source = random.Random(engine)
    settings = {"maintenance_engine": engine, "maintenance_rows": 500, "spark_enabled": engine != "embedded"}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        for relation, columns in RELATIONS.items():
            mirror.stream(relation, columns.replace(" PRIMARY KEY", ""))
        _side(mirror)
        for name in names:
            mirror.view(name, TEXTS[name])
        pieces = _pieces(source)
        largest = pieces.pop(max(range(len(pieces)), key=lambda place: len(pieces[place][1])))
        half = len(pieces) // 2
        _load(mirror, pieces[:half], source)
        mirror.copy(largest[0], b"".join(largest[1]))  # not read, so that background maintenance has it
        if engine != "embedded":
            wait_until(lambda: mirror.jobs("spark") > 0, 120, "job of spark in millstream.jobs")
        mirror.restart(crash=True)
        mirror.both("UPDATE side SET value = value || ' of old' WHERE key < 50")
        mirror.check()
        _load(mirror, pieces[half:], source)
        mirror.check()


def _pieces(source: random.Random) -> list[tuple[str, Sequence[bytes]]]:
    """The rows to load, in random pieces of all streams in random order."""
    found: list[tuple[str, Sequence[bytes]]] = [
        (relation, piece)
        for relation in RELATIONS
        for piece in cut(EVENTS.lines(relation, 0, STREAMED), PIECES, source)
    ]
    source.shuffle(found)
    return found


def _load(mirror: Mirror, pieces: Sequence[tuple[str, Sequence[bytes]]], source: random.Random) -> None:
    names = list(mirror.views)
    for number, (stream, piece) in enumerate(pieces):
        if len(piece) <= 40:
            mirror.insert(stream, parse(piece), one_statement=number % 2 == 1)
        else:
            mirror.copy(stream, b"".join(piece))
        mirror.check(*source.sample(names, source.choice((1, 2, 4))))


def _side(mirror: Mirror) -> None:
    mirror.table("side", SIDE)
    mirror.both(FILL_SIDE)


def _store(mirror: Mirror, begin: int, end: int) -> None:
    for relation in RELATIONS:
        mirror.copy(relation, EVENTS.csv(relation, begin, end))


def _change(mirror: Mirror, source: random.Random, loaded: int) -> int:
    """A few changes, some in one transaction; how many events there are then."""
    in_block = source.random() < 0.5
    if in_block:
        mirror.both("BEGIN")
    for _ in range(source.randint(1, 3)):
        if source.random() < 0.3:
            more = source.choice((1, 50, 150))
            _store(mirror, loaded, loaded + more)
            loaded += more
        else:
            mirror.both(source.choice(list(_statements(source, loaded))))
    if in_block:
        mirror.both("COMMIT")
    return loaded


def _statements(source: random.Random, loaded: int) -> Iterator[str]:
    """Changes of every relation: of what one person or auction has, or of a share of all."""
    person = FIRST + source.randrange(loaded // EPOCH)
    auction = FIRST + source.randrange(loaded // EPOCH * 3)
    share = f"id % 20 = {source.randrange(20)}"
    yield f"UPDATE auction SET expires = date_time + interval '{source.randint(1, 9)} seconds' WHERE {share}"
    yield f"UPDATE auction SET expires = expires + interval '1 minute' WHERE seller = {person}"
    yield f"UPDATE auction SET category = 10, item_name = 'another thing' WHERE id = {auction}"
    yield f"DELETE FROM auction WHERE id = {auction}"
    yield f"UPDATE bid SET price = price + {source.randint(1, 90_000)} WHERE auction = {auction}"
    yield f"UPDATE bid SET price = price / 2 WHERE bidder = {person}"
    yield f"UPDATE bid SET date_time = date_time + interval '11 seconds' WHERE auction = {auction} AND price % 2 = 0"
    yield f"UPDATE bid SET channel = 'Apple', extra = 'cc' WHERE price % 50 = {source.randrange(50)}"
    yield f"INSERT INTO bid SELECT * FROM bid WHERE auction = {auction}"
    yield f"DELETE FROM bid WHERE bidder = {person} AND price % 3 = 0"
    yield f"DELETE FROM person WHERE id = {person}"
    yield f"UPDATE person SET state = 'OR', name = upper(name) WHERE {share}"
    yield f"UPDATE side SET value = value || '.' WHERE key % 10 = {source.randrange(10)}"
