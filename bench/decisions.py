"""Whether the chosen way to follow changes is the cheapest: TPC-H's queries as views, each alternative that was
compared forced in turn, in a database within this process.

One row at a time of each relation that a query reads goes and comes back, so that all relations change as often: that
is what is expected of relations of which nothing is known. The measure is the processor time of the nodes, as
``millstream.paths`` has it. A choice counts as right where it takes at most a tenth more than the cheapest alternative,
or a tenth of a millisecond (Databricks has published 87.5 % for the choice between incremental and full refreshes).
"""

from __future__ import annotations

import math
import random
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as pc

from bench.harness import Rig, Row
from catalog.objects import Table
from executor.database.database import Database
from executor.maintained.known_view import KeptFacts
from executor.rows.row_shapes import schema_of
from planner.incremental.cost.choice import Alternative, alternatives_of
from tests.executor.client import Client, open_database
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE: Final = "The chosen way to follow changes beside the cheapest one"
#: The share of the scale that the data has.
SHARE: Final = 1 / 10
#: Changes of each relation, and those of which the first ones make indexes and plans.
CHANGES: Final = 20
FIRST: Final = 3
#: Seconds until rows are kept.
PATIENCE: Final = 60.0
#: By table, the columns that tell its rows apart.
KEYS: Final = {
    "lineitem": ("l_orderkey", "l_linenumber"),
    "orders": ("o_orderkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "nation": ("n_nationkey",),
    "region": ("r_regionkey",),
}
AIM: Final = 95.0


def run(rig: Rig) -> list[Row]:
    """All queries over one database."""
    rows: list[Row] = []
    ratios: list[float] = []
    right = 0
    with closing(open_database(rig.folder / "decisions")) as database:
        measuring = _Measuring(database, rig)
        for path in queries("tpch"):
            query = path.read_text().strip().rstrip(";")
            taken = {name: measuring.milliseconds(query, name) for name in measuring.names(query)}
            if len(taken) < 2:
                continue
            chosen, least = next(iter(taken.values())), min(taken.values())
            right += chosen <= max(1.1 * least, least + 0.1)
            ratios.append(chosen / least)
            for name, milliseconds in taken.items():
                case = f"{path.stem}, {name}{' (chosen)' if milliseconds == chosen else ''}"
                rows.append(Row(case, milliseconds, "ms", least, "the cheapest", better="less"))
    share = 100 * right / len(ratios)
    text = f"at least {AIM:g} %"
    rows.append(Row(f"right choices of {len(ratios)}", share, "%", aim=AIM, aim_text=text))
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    rows.append(Row("the chosen one by the cheapest, geometric mean", mean, "times", better="less"))
    rows.append(Row("the chosen one by the cheapest, the worst", max(ratios), "times", better="less"))
    return rows


def loaded(database: Database, client: Client, rig: Rig) -> Iterator[tuple[str, pa.Table]]:
    """Makes TPC-H's tables, with so much data as ``SHARE`` says: each name with the rows."""
    for name, columns in TABLES.items():
        client.run(f"CREATE TABLE {name} ({columns})")
        (table,) = (item for item in database.core.catalog.objects.values() if item.name == name)
        assert isinstance(table, Table)
        kinds = {field.name: field.type for field in schema_of(table)}
        data = pc.read_csv(rig.tpch.csv(SHARE * rig.scale, name), convert_options=pc.ConvertOptions(column_types=kinds))
        client.copy(f"COPY {name} FROM STDIN", data.to_batches())
        yield name, data


class _Measuring:
    """TPC-H in a database, and the work of views of it."""

    def __init__(self, database: Database, rig: Rig) -> None:
        self._database, self._client = database, Client(database)
        self._rows: dict[str, list[dict[str, Any]]] = {}
        drawn = random.Random(1)
        for name, data in loaded(database, self._client, rig):
            self._client.run(f"CREATE TABLE all_{name} AS SELECT * FROM {name}")
            places = [drawn.randrange(data.num_rows) for _ in range(CHANGES)]
            self._rows[name] = data.select(KEYS[name]).take(places).to_pylist()

    def names(self, query: str) -> list[str]:
        """The alternatives of a view of the query, the chosen one first."""
        with self._view(query):
            return [item.rewriting.name for item in self._facts().alternatives]

    def milliseconds(self, query: str, name: str) -> float:
        """Those of a change, the mean over the relations of the medians, by one alternative."""

        def forced(*arguments: Any) -> tuple[Alternative, ...]:
            return tuple(sorted(alternatives_of(*arguments), key=lambda item: item.rewriting.name != name))

        with patch("executor.maintained.dataflow_choice.alternatives_of", forced), self._view(query):
            self._wait()
            read = [table for table in TABLES if re.search(rf"\b{table}\b", query)]
            return statistics.fmean(statistics.median(self._changes(table)) for table in read)

    def _changes(self, table: str) -> Iterator[float]:
        """The milliseconds of the changes of one relation but the first ones."""
        for number, row in enumerate(self._rows[table]):
            where = " AND ".join(f"{column} = {value}" for column, value in row.items())
            before = self._work()
            self._client.run(f"DELETE FROM {table} WHERE {where}; SELECT count(*) FROM decided")
            self._client.run(f"INSERT INTO {table} SELECT * FROM all_{table} WHERE {where}")
            self._client.run("SELECT count(*) FROM decided")
            if number >= FIRST:
                yield (self._work() - before) / 2

    @contextmanager
    def _view(self, query: str) -> Iterator[None]:
        self._client.run(f"CREATE MATERIALIZED VIEW decided WITH (method = 'incremental') AS {query}")
        yield
        self._client.run("DROP MATERIALIZED VIEW decided")

    def _wait(self) -> None:
        """Until the rows of the view are kept."""
        end = time.monotonic() + PATIENCE
        while self._facts().counts is None:
            self._client.run("SELECT count(*) FROM decided")
            assert time.monotonic() < end, "rows are not kept"
            time.sleep(0.02)

    def _facts(self) -> KeptFacts:
        (runtime,) = (item for item in self._database.core.runtimes() if item.view.name == "decided")
        with runtime.lock:
            return self._database.read_services.maintained.facts(runtime, chooses=True)

    def _work(self) -> float:
        return sum(work.total.milliseconds for work in self._facts().work.values())
