"""Views that share what they join beside views that keep their own rows (iShare, section 5), in databases within this
process that have the same rows.

Some views over one join of TPC-H's tables, with other keys, values and filters, as dashboards have them; and TPC-H's 22
queries at once, as the paper has them. Lines of some orders go and come again, and all views are read after each. The
measure is the processor time of the reads, without what they take where nothing has changed, and the bytes of the rows
that are kept.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Final

from bench.decisions import PATIENCE, loaded
from bench.harness import Rig, Row
from executor.database.database import Database
from executor.maintained.known_view import FIRST_CHANGES
from tests.executor.client import Client, open_database
from tests.rig.benchmarks import queries

TITLE: Final = "Views that share joins beside views that keep their own"
_FROM: Final = (
    "FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey"
    " JOIN nation ON c_nationkey = n_nationkey"
)
#: What each view of the join shows, its keys first, and which rows.
DASHBOARDS: Final = (
    ("n_name, sum(l_extendedprice)", ""), ("o_orderdate, count(*)", ""), ("l_shipmode, sum(l_quantity)", ""),
    ("c_mktsegment, sum(l_extendedprice * (1 - l_discount))", "l_returnflag = 'R'"), ("o_orderpriority, count(*)", ""),
    ("l_shipdate, sum(l_quantity)", "n_name = 'FRANCE'"), ("n_name, l_shipmode, count(*)", ""),
    ("l_returnflag, l_linestatus, sum(l_quantity), avg(l_discount)", ""), ("o_orderstatus, count(*)", ""),
    ("n_name, o_orderpriority, count(*)", "o_orderdate >= '1995-01-01'"), ("l_linenumber, sum(l_tax)", ""),
    ("c_mktsegment, l_shipmode, sum(l_quantity)", ""), ("o_orderdate, sum(l_extendedprice)", "l_shipmode = 'AIR'"),
    ("l_shipmode, max(l_extendedprice)", ""), ("n_name, min(o_orderdate)", ""), ("c_mktsegment, count(*)", ""),
)  # fmt: skip
NUMBERS: Final = (2, 8, 16)
#: Orders of which the lines are changed at once, which have four each on average.
ORDERS: Final = (8, 256)
CHANGES: Final = 11
#: Changes after which the planner asks again what to share, knowing them.
KNOWN: Final = 2 * FIRST_CHANGES + 2
MODES: Final = ("off", "auto")


def run(rig: Rig) -> list[Row]:
    """The dashboards, then the queries of TPC-H."""
    with ExitStack() as stack:
        sides = {mode: _Side(stack.enter_context(closing(_open(rig, mode))), rig) for mode in MODES}
        rows: list[Row] = []
        for number in NUMBERS:
            rows += _compared(f"{number} views of one join", sides, [_dashboard(place) for place in range(number)])
        texts = [path.read_text().strip().rstrip(";") for path in queries("tpch")]
        rows += _compared("the 22 queries", sides, texts)
        return rows


def _open(rig: Rig, mode: str) -> Database:
    return open_database(rig.folder / f"sharing_{mode}", view_sharing=mode, trace_memory=6 << 30)


def _dashboard(place: int) -> str:
    shown, where = DASHBOARDS[place]
    keys = [item for item in shown.split(", ") if "(" not in item]
    filtered = f" WHERE {where}" if where else ""
    return f"SELECT {shown} {_FROM}{filtered} GROUP BY {', '.join(keys)}"


def _compared(case: str, sides: dict[str, _Side], texts: Sequence[str]) -> Iterator[Row]:
    """The views made, settled, measured and dropped on each side."""
    for side in sides.values():
        side.make(texts)
    drawn = random.Random(len(texts))
    for orders in ORDERS:
        taken: dict[str, list[float]] = {mode: [] for mode in sides}
        for _ in range(CHANGES):
            first = 32 * drawn.randrange(1, 3_000)
            for mode, side in sides.items():
                taken[mode].append(side.change(first, orders))
        alone = statistics.median(taken["off"])
        for mode, figures in taken.items():
            if mode != "off":
                milliseconds = statistics.median(figures)
                text = f"{case}, lines of {orders} orders"
                yield Row(text, milliseconds, "ms", alone, "off", better="less")
    alone = sides["off"].megabytes
    for mode, side in sides.items():
        if mode != "off":
            shared = f"{side.parts} part{'s' * (side.parts != 1)} read by {side.readers} views"
            yield Row(f"{case}, memory ({shared})", side.megabytes, "MB", alone, "off", better="less")
        side.drop()


class _Side:
    """One database, and its views."""

    def __init__(self, database: Database, rig: Rig) -> None:
        self._database, self._client = database, Client(database)
        self._number = 0
        for name, _ in loaded(database, self._client, rig):
            if name == "lineitem":
                self._client.run("CREATE TABLE all_lines AS SELECT * FROM lineitem")

    def make(self, texts: Sequence[str]) -> None:
        """The views; returns once all keep their rows, and none is about to share."""
        self._number = len(texts)
        for place, text in enumerate(texts):
            self._client.run(
                f"CREATE MATERIALIZED VIEW v{place} WITH (method = 'incremental', trigger = 'on read') AS {text}"
            )
        self._settle()
        for _ in range(KNOWN):
            self.change(32, 8)
        self._settle()

    def _settle(self) -> None:
        deadline = time.monotonic() + PATIENCE * 3
        while not self._is_settled():
            assert time.monotonic() < deadline, "views do not settle"
            for table, key in (("customer", "c_custkey"), ("partsupp", "ps_partkey")):  # else no view is read anew
                self._client.run(f"UPDATE {table} SET {key} = {key} WHERE {key} = 1")
            self.change(32, 8)
            time.sleep(0.1)

    def _is_settled(self) -> bool:
        known = [*self._database.read_services.maintained._known.values()]
        are_kept = len(known) >= self._number and all(item.kept is not None and item.fill is None for item in known)
        return are_kept and all(set(item.shares) <= set(item.expanded.sources) for item in known)

    def change(self, first: int, orders: int) -> float:
        """Milliseconds of reading all views after the lines of some orders have gone, and after they have come again,
        beyond those of reading them another time; ``first`` is a multiple of 32."""
        where = f"l_orderkey BETWEEN {first} AND {first + 4 * orders - 1}"  # eight keys of 32 are there
        self._client.run(f"DELETE FROM lineitem WHERE {where}")
        gone = self._read()
        self._client.run(f"INSERT INTO lineitem SELECT * FROM all_lines WHERE {where}")
        return gone + self._read() - 2 * self._read()

    def _read(self) -> float:
        started = time.process_time()
        for place in range(self._number):
            self._client.run(f"SELECT count(*) FROM v{place}")
        return 1000 * (time.process_time() - started)

    @property
    def megabytes(self) -> float:
        """Those of the rows that are kept."""
        known = self._database.read_services.maintained._known.values()
        return sum(item.kept.rows.bytes for item in known if item.kept is not None) / 1e6

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self._database.core.parts)

    @property
    def readers(self) -> int:
        """Views that read parts."""
        parts = self._database.core.parts
        known = self._database.read_services.maintained._known.values()
        return sum(not parts.keys().isdisjoint(item.reads) for item in known)

    def drop(self) -> None:
        """The views."""
        for place in range(self._number):
            self._client.run(f"DROP MATERIALIZED VIEW v{place}")
