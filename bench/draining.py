"""A server with queries that run, drained: how long until all of them have left, beside a raw copy of their state.

Two servers with one storage are processes of their own, and the rows come through the first one's connections. What was
written of the queries is linked as it appears, since it vanishes with its query, and copied afterwards: read, written
and synced.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.harness import Rig, Row, connect, load
from tests.rig.process import wait_until
from tests.rig.server import Millstream

TITLE: Final = "A server with 8 running queries is drained"
_QUERIES: Final = 8
_SCALE: Final = 0.1
#: After the manner of queries 13 and 18, for one quantity after the other: pipelines of a tenth of a second, many of
#: which read the groups of all orders.
_GROUPS: Final = (
    "WITH g AS (SELECT l_orderkey AS k, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price FROM lineitem "
    "GROUP BY l_orderkey) "
)
_ARM: Final = (
    "SELECT {0} AS least, n, count(*) AS orders, sum(quantity) AS quantity, sum(price) AS price FROM (SELECT "
    "l_orderkey, count(*) AS n FROM lineitem WHERE l_quantity > {0} GROUP BY l_orderkey) h "
    "JOIN g ON g.k = h.l_orderkey GROUP BY n"
)
_ARMS: Final = 20


def run(rig: Rig) -> list[Row]:
    """The figures of the median drain."""
    rig = Rig(rig.rounds, rig.seconds, min(_SCALE, rig.scale), rig.folder)
    runs = sorted((_drained(rig) for _ in range(rig.rounds)), key=lambda found: found[0] - found[1])
    drain, copy, size, moved = runs[len(runs) // 2]
    beyond = tuple(drain - copy for drain, copy, _, _ in runs)
    return [
        Row("queries that left", moved, f"of {_QUERIES}"),
        Row("their state", size / 1e6, "MB"),
        Row("drain", drain, "s", copy, "s a raw copy"),
        Row("drain without the raw copy", drain - copy, "s", aim=3.0, aim_text="3 s", better="less", runs=beyond),
    ]


def _drained(rig: Rig) -> tuple[float, float, int, int]:
    """Seconds of a drain and of a raw copy, bytes, and how many queries left."""
    storage, copies = rig.folder / "storage", rig.folder / "copies"
    own = {"spark_enabled": False, "storage": storage, "server_lease": 600, "result_cache_bytes": 0}
    try:
        with rig.millstream(server_name="one", **own) as one, rig.millstream(server_name="two", **own):
            with connect(one) as loading:
                load(loading, rig, ("lineitem",))
            wanted = [_answer(one, number, threading.Barrier(1)) for number in range(_QUERIES)]
            begin = threading.Barrier(_QUERIES)
            with ThreadPoolExecutor(_QUERIES) as pool, one.connect() as client, _linked(storage / "queries", copies):
                answers = [pool.submit(_answer, one, number, begin) for number in range(_QUERIES)]
                running = "SELECT count(*) FROM millstream.queries WHERE state = 'running'"
                wait_until(lambda: client.execute(running).fetchone() == (_QUERIES,), 60, "queries")
                started = time.perf_counter()
                ((moved,),) = client.execute("SELECT millstream.drain('one')").fetchall()
                drain = time.perf_counter() - started
                assert [answer.result() for answer in answers] == wanted, "they go on as if nothing had been"
            copy, size = _copied(copies)
    finally:
        for folder in (storage, copies):
            shutil.rmtree(folder, ignore_errors=True)
    return drain, copy, size, moved


def _query(number: int) -> str:
    """Each with quantities of its own, so that none is answered as another one was."""
    arms = " UNION ALL ".join(_ARM.format(arm + number / 10) for arm in range(_ARMS))
    return f"{_GROUPS}{arms} ORDER BY least, n"


def _answer(server: Millstream, number: int, begin: threading.Barrier) -> list[Any]:
    """A query's rows in steps, as soon as all are ready to begin."""
    with server.connect() as client:
        client.execute("SET separable = on")
        begin.wait()
        return client.execute(_query(number).encode()).fetchall()


@contextmanager
def _linked(folder: Path, copies: Path) -> Iterator[None]:
    """Every file of a query that appears meanwhile keeps a second name."""
    copies.mkdir()
    ended = threading.Event()

    def link() -> None:
        while not ended.wait(0.002):
            for path in folder.glob("*/*.parquet"):
                with contextlib.suppress(FileExistsError, FileNotFoundError):
                    os.link(path, copies / path.name)

    thread = threading.Thread(target=link)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _copied(folder: Path) -> tuple[float, int]:
    """Seconds of a copy of all files on the same disk, and their bytes."""
    paths = list(folder.iterdir())
    started = time.perf_counter()
    for path in paths:
        with path.open("rb") as source, path.with_suffix(".copy").open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
    return time.perf_counter() - started, sum(path.stat().st_size for path in paths)
