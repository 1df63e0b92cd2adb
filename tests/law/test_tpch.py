"""The law on TPC-H: views read at random moments of a load equal their queries evaluated from scratch in PostgreSQL.

lineitem is the stream, the other tables are static; queries 1, 3, 6, 15 and 20 as in the thesis' section 4.3.2, and its
running examples (figures 3.2 and 4.2), maintained by the embedded engine, by Spark, and by both.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate, product
from typing import Any

import psycopg
import pytest

from tests.rig import thesis
from tests.rig.beside import Repeating
from tests.rig.mirror import Mirror, cut, mirrored, parse
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.rig.tpch import QUERIES, TABLES, WIDE, Tpch

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

ENGINES = ("embedded", "spark", "auto")


def _cases(chosen: Collection[tuple[object, ...]], *others: Iterable[object]) -> list[Any]:
    """The test's cases for each engine; those that are not chosen run with ``--whole`` only."""
    found = []
    for case in product(ENGINES, *others):
        marks = ((pytest.mark.whole, case not in chosen), (pytest.mark.spark, case[0] != "embedded"))
        found.append(pytest.param(*case, marks=[mark for mark, applies in marks if applies]))
    return found


def _server(engine: str, rows: int) -> Millstream:
    settings = {"maintenance_engine": engine, "maintenance_rows": rows, "spark_enabled": engine != "embedded"}
    return Millstream(settings=settings)


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Millstream]]:
    """The server of an engine, which the tests of that engine share: Spark takes long to start."""
    with contextlib.ExitStack() as running:
        started: dict[str, Millstream] = {}

        def of(engine: str) -> Millstream:
            if engine not in started:
                started[engine] = running.enter_context(_server(engine, 1000))
            return started[engine]

        yield of


def _prepare(mirror: Mirror, tpch: Tpch, scale: float) -> None:
    for name, columns in TABLES.items():
        if name == "lineitem":
            mirror.stream(name, columns)
        else:
            mirror.table(name, columns)
            mirror.copy(name, b"".join(tpch.lines(scale, name)))
    mirror.judge.execute("CREATE INDEX ON lineitem (l_partkey, l_suppkey)")  # query 20 from scratch, in seconds
    for name, query in {**QUERIES, **WIDE}.items():
        mirror.view(name, query)
    mirror.acknowledged = 0


def _load(mirror: Mirror, lines: list[bytes], pieces: int, source: random.Random) -> None:
    names = list(mirror.views)
    for number, piece in enumerate(cut(lines, pieces, source)):
        if len(piece) <= 40 and number % 3:
            mirror.insert("lineitem", parse(piece), one_statement=number % 3 == 1)
        else:
            mirror.copy("lineitem", b"".join(piece))
        mirror.check(*source.sample(names, source.choice((0, 1, 1, 3))))
    mirror.check()


def _await_jobs(mirror: Mirror, engine: str, done: int = 0) -> None:
    wait_until(lambda: mirror.jobs(engine) > done, 120, f"job of {engine} in millstream.jobs")


@pytest.mark.parametrize(("engine", "scale"), _cases([("embedded", 0.01)], (0.01, 0.1)))
def test_views_equal_their_queries_at_random_moments(
    engine: str, scale: float, postgres: Postgres, tpch: Tpch, whole: bool
) -> None:
    source, pieces = random.Random(f"{engine} {scale}"), 16 if whole else 4
    lines = tpch.lines(scale, "lineitem")
    source.shuffle(lines)
    with _server(engine, int(500_000 * scale)) as server, mirrored(server, postgres) as mirror:
        _prepare(mirror, tpch, scale)
        half = len(lines) // 2
        _load(mirror, lines[:half], pieces, source)
        unread = half + len(lines) // 8
        mirror.copy("lineitem", b"".join(lines[half:unread]))  # no engine computes these for Spark
        if engine != "embedded":
            _await_jobs(mirror, "spark")
            mirror.check()  # the rows committed by Spark, without a tail
        mirror.restart(crash=False)
        mirror.check()
        _load(mirror, lines[unread:], pieces, source)


@pytest.mark.parametrize(
    ("engine", "name"),
    _cases([("embedded", "figure_3_2"), ("embedded", "figure_4_2")], thesis.EXAMPLES),
)
def test_running_examples_equal_their_queries(
    engine: str, name: str, postgres: Postgres, servers: Callable[[str], Millstream]
) -> None:
    source = random.Random(f"{engine} {name}")
    example = thesis.EXAMPLES[name]
    with mirrored(servers(engine), postgres) as mirror:
        done = mirror.jobs("spark")
        for table, (columns, rows) in example.tables.items():
            mirror.table(table, columns)
            mirror.insert(table, rows, one_statement=True)
        for stream, columns in example.streams.items():
            mirror.stream(stream, columns)
        mirror.view(name, example.query)
        for number in range(30):
            stream = source.choice(list(example.streams))
            mirror.insert(
                stream, thesis.rows(stream, source.choice((1, 7, 300)), source), one_statement=number % 2 == 0
            )
            if source.random() < 0.5:
                mirror.check()
        if engine == "spark":
            _await_jobs(mirror, "spark", done)
        mirror.check()


# With both engines, the load is over before Spark takes part.
@pytest.mark.parametrize("engine", _cases([("embedded",), ("spark",)]))
def test_reader_beside_the_load_sees_whole_statements_and_every_acknowledged_one(
    engine: str, postgres: Postgres, tpch: Tpch, servers: Callable[[str], Millstream]
) -> None:
    """A concurrent read shows the rows of a prefix of the statements, including all that were acknowledged before it
    began."""
    source = random.Random(engine)
    pieces = list(cut(tpch.lines(0.01, "lineitem"), 60, source))
    totals = list(accumulate((len(piece) for piece in pieces), initial=0))
    sent, acknowledged = 0, 0
    seen: list[tuple[int, int, int]] = []
    query = "SELECT (SELECT coalesce(sum(count), 0)::int8 FROM shown), lines FROM total"

    def read(client: psycopg.Connection) -> None:
        before = acknowledged
        row = client.execute(query).fetchone()
        assert row is not None
        assert row[0] == row[1], "two views of one statement's snapshot differ"
        seen.append((before, row[0], sent))

    server = servers(engine)
    with server.connect() as client, server.connect() as other:
        client.execute(f"CREATE FOREIGN TABLE lineitem ({TABLES['lineitem']}) SERVER stream".encode())
        client.execute("CREATE VIEW shown AS SELECT l_shipmode, count(*) FROM lineitem GROUP BY l_shipmode")
        client.execute("CREATE VIEW total AS SELECT count(*) AS lines FROM lineitem")
        with Repeating(read, other) as reading:
            for number, piece in enumerate(pieces):
                sent = totals[number + 1]
                _copy(client, piece)
                acknowledged = sent
                wait_until(lambda reads=number // 10: reading.has_done(reads))  # type: ignore[misc]
    allowed = set(totals)
    for before, shown, after in seen:
        assert shown in allowed
        assert before <= shown <= after


def _copy(client: psycopg.Connection[tuple[object, ...]], lines: object) -> None:
    assert isinstance(lines, list)
    with client.cursor() as cursor, cursor.copy("COPY lineitem FROM STDIN (FORMAT csv)") as copy:
        copy.write(b"".join(lines))
