"""The queries of Nexmark over streams: rows a second until a view of all of them has been read, and reads after more
events; beside the same queries over tables.

For each query the relations that it reads come by COPY in pieces, first into streams with a continuous view, then into
tables of the same server, where the query is computed at the end. Then small pieces come into both. After each of them
the view is read, beside computing the query from scratch.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect
from tests.rig.benchmarks import queries
from tests.rig.nexmark import RELATIONS, Nexmark, create

TITLE = "Nexmark: COPY of events into streams until the view is fresh, and reads after more events"
#: Events at scale factor 1, and the pieces in which they come.
EVENTS: Final = 500_000
PIECES: Final = 10
#: Events that come before a further read; the first of these reads fill what is kept.
MORE: Final = 1_000
FIRST_READS: Final = 3
#: The relation and CSV text of each COPY.
Pieces = Sequence[tuple[str, bytes]]


def run(rig: Rig) -> list[Row]:
    """All queries on one server, one after the other."""
    count = int(EVENTS * rig.scale)
    marks = [count * place // PIECES for place in range(PIECES + 1)]
    loads = [piece for begin, end in pairwise(marks) for piece in _pieces(begin, end)]
    starts = [count + MORE * place for place in range(FIRST_READS + rig.rounds)]
    further = [_pieces(start, start + MORE) for start in starts]
    rows: list[Row] = []
    with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server, connect(server) as client:
        for path in queries("nexmark"):
            query = path.read_text(encoding="utf-8")
            load, *others = (_read_by(query, pieces) for pieces in (loads, *further))
            total = sum(data.count(b"\n") for _, data in load)
            seconds, reads = _measured(client, query, True, load, others)
            whole, scratch = _measured(client, query, False, load, others)
            rows.append(Row(f"{path.stem}, load", total / seconds, "rows/s", total / whole, "into tables"))
            median, peer = statistics.median(reads), statistics.median(scratch)
            case = f"{path.stem}, read after {MORE:,} events"
            rows.append(Row(case, median, "ms", peer, "from scratch", better="less", runs=tuple(reads)))
    return rows


def _pieces(begin: int, end: int) -> Pieces:
    """A range of events, by relation."""
    return [(relation, Nexmark().csv(relation, begin, end)) for relation in RELATIONS]


def _read_by(query: str, pieces: Pieces) -> Pieces:
    """The pieces of the relations that a query reads."""
    relations = set(re.findall(r"\b(?:from|join) (\w+)", query))
    return [piece for piece in pieces if piece[0] in relations]


def _measured(
    client: Client, query: str, stream: bool, load: Pieces, others: Sequence[Pieces]
) -> tuple[float, list[float]]:
    """Seconds from the start of the load to the end of the read, and milliseconds of each read after other pieces."""
    for statement in create(stream):
        client.query(statement)
    if stream:
        client.query(f"CREATE VIEW watched AS {query}")
    read = "SELECT * FROM watched" if stream else query
    started = time.perf_counter()
    _copy(client, load)
    client.fetch(read)
    seconds = time.perf_counter() - started
    times = []
    for pieces in others:
        _copy(client, pieces)
        started = time.perf_counter()
        client.fetch(read)
        times.append((time.perf_counter() - started) * 1000)
    kind = "FOREIGN TABLE" if stream else "TABLE"
    client.query(f"DROP {kind} {', '.join(RELATIONS)} CASCADE; DROP TABLE side CASCADE")
    return seconds, times[FIRST_READS:]


def _copy(client: Client, pieces: Pieces) -> None:
    for relation, data in pieces:
        if data:  # of few events, none may be a person
            client.copy(f"COPY {relation} FROM STDIN (FORMAT csv)", data)
