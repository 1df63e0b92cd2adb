"""How far the estimated changes of views are from those that happen: EXPLAIN beside what ``millstream.paths`` measures.

The views are TPC-H's queries as they are written, followed from the first read on. Rows of the largest table that a
query reads go and come back, a few and then many at once. Estimates are corrected by what the first half of the changes
has changed (the paper's warm-up runs, section 5.2), and compared with the mean of what the second half changes at each
node: the q-error is the larger of the two divided by the smaller (InQP, section 5.5, compares relative errors).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from bench.changes import sparse_key
from bench.harness import Rig, Row, connect, load
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE = "Estimated changes of views beside measured ones, q-error"
#: Rows of a change, and how often they go and come back in each half.
SIZES: Final = {1: 12, 20: 6, 1000: 3}
#: By table, the rows with some keys.
ROWS: Final = {
    "lineitem": "l_linenumber = 1 AND l_orderkey IN ({keys})",
    "orders": "o_orderkey IN ({keys})",
    "partsupp": "ps_partkey IN ({keys})",
}
#: The share of the scale that the data has.
SHARE: Final = 1 / 20
#: Less than a row in two changes counts as that; nodes that are expected to change less, and do, say nothing.
LEAST: Final = 0.5
AIM: Final = 2.0


def run(rig: Rig) -> list[Row]:
    """All views of one server, one after the other."""
    scale = SHARE * rig.scale
    found: dict[tuple[int, str], list[float]] = {}
    with rig.millstream(spark_enabled=False) as server, server.connect() as client:
        with connect(server) as loading:
            load(loading, rig, tuple(TABLES), scale)
        for table in ROWS:
            client.execute(f"CREATE TABLE all_{table} AS SELECT * FROM {table}".encode())
        for path in queries("tpch"):
            for size in SIZES:
                for name, error in _errors(client, path.read_text().strip().rstrip(";"), size, scale):
                    found.setdefault((size, name), []).append(error)
    rows: list[Row] = []
    for (size, name), errors in found.items():
        many = f"{name}, changes of {size:,} row{'s' * (size > 1)}"
        text = f"a median below {AIM:g}"
        rows.append(Row(f"{many}, median", statistics.median(errors), "times", aim=AIM, aim_text=text, better="less"))
        rows.append(Row(f"{many}, nine in ten", sorted(errors)[len(errors) * 9 // 10], "times", better="less"))
    return rows


def _errors(client: psycopg.Connection[Any], query: str, size: int, scale: float) -> Iterator[tuple[str, float]]:
    """The q-errors of the nodes of one view, and of their time together as it was estimated before there was a view."""
    table, drawn = next(name for name in ROWS if name in query), random.Random(size)
    create = f"CREATE MATERIALIZED VIEW estimated WITH (method = 'incremental') AS {query}"
    before = sum(_of_nodes(client, f"EXPLAIN (FORMAT JSON) {create}", "Milliseconds").values())
    client.execute(create.encode())
    client.execute(b"SELECT * FROM estimated")
    _change(client, table, drawn, size, scale)
    shown, first = "EXPLAIN (FORMAT JSON) SELECT * FROM estimated", _measured(client)
    estimates = {name: _of_nodes(client, shown, name.capitalize()) for name in ("inserted", "deleted")}
    _change(client, table, drawn, size, scale)
    measured = _since(first, _measured(client))
    client.execute(b"DROP MATERIALIZED VIEW estimated")
    changes = max((item["changes"] for item in measured.values() if item["is_source"]), default=0.0)
    if not changes:  # the query does not see what has changed
        return
    for name, expected in estimates.items():
        for node in expected:
            found = measured.get(node, {"is_source": 0.0, name: 0.0})  # no change has reached it
            taken = found[name] / changes
            if not found["is_source"] and max(expected[node], taken) >= LEAST:
                yield f"rows {name}", _error(expected[node], taken)
    if size == 1 and before:
        taken = sum(item["milliseconds"] for item in measured.values()) / changes
        yield "time of a view before it is created", max(before / taken, taken / before)


def _change(client: psycopg.Connection[Any], table: str, drawn: random.Random, size: int, scale: float) -> None:
    """Rows of a table go and come back, and the view is read after each change."""
    for _ in range(SIZES[size]):
        where = ROWS[table].format(keys=", ".join(str(sparse_key(drawn, table, scale)) for _ in range(size)))
        for change in (f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM all_{table}"):
            client.execute(f"{change} WHERE {where}".encode())
            client.execute(b"SELECT * FROM estimated")


def _since(first: dict[int, dict[str, float]], all_of_it: dict[int, dict[str, float]]) -> dict[int, dict[str, float]]:
    """What changes have taken at each node since they had taken what they had at ``first``."""
    return {
        node: {
            name: number if name == "is_source" else number - first.get(node, {}).get(name, 0)
            for name, number in numbers.items()
        }
        for node, numbers in all_of_it.items()
    }


def _error(estimate: float, measured: float) -> float:
    one, other = max(estimate, LEAST), max(measured, LEAST)
    return max(one / other, other / one)


def _of_nodes(client: psycopg.Connection[Any], statement: str, name: str) -> dict[int, float]:
    """What a statement estimates for each node of the one view that it explains."""
    ((document,),) = client.execute(statement.encode()).fetchall()
    (view,) = document[0]["Continuous Views"].values()
    nodes = view["Upper Method"].get("Nodes", ())
    return {node["Node"]: node["Estimated Change"][name] for node in nodes if "Estimated Change" in node}


def _measured(client: psycopg.Connection[Any]) -> dict[int, dict[str, float]]:
    """What changes have taken at each node that one has reached."""
    columns = "changes, rows_inserted, rows_deleted, milliseconds, method LIKE 'changes of %'"
    rows = client.execute(
        f"SELECT part, {columns} FROM millstream.paths WHERE view = 'estimated' AND part LIKE 'node %' AND changes > 0"
    )
    names = ("changes", "inserted", "deleted", "milliseconds", "is_source")
    return {int(part.removeprefix("node ")): dict(zip(names, numbers, strict=True)) for part, *numbers in rows}
