"""Queries of TPC-H pipeline by pipeline beside whole.

The three settings of ``separable`` take turns, each query once before under the setting; their figure is the geometric
mean over all queries of a setting's time by that of ``off``, by the fastest of the runs. ``--scale`` sets the scale
factor. What it takes to leave and to go on is ``leaving``'s.
"""

from __future__ import annotations

import math
import time
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect, load
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE: Final = "TPC-H pipeline by pipeline"
QUERIES: Final = queries("tpch")
SETTINGS: Final = {"on": 1.08, "auto": 1.02}


def run(rig: Rig) -> list[Row]:
    """Each setting's figure."""
    with rig.millstream(spark_enabled=False, result_cache_bytes=0) as server, connect(server) as client:
        load(client, rig, tuple(TABLES))
        return _settings(rig, client)


def _settings(rig: Rig, client: Client) -> list[Row]:
    logs: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for path in QUERIES:
        best = _best(rig, client, path.read_text())
        for name in SETTINGS:
            logs[name].append(math.log(best[name] / best["off"]))
    return [
        Row(f"separable = {name}, {len(QUERIES)} queries", math.exp(sum(found) / len(found)), "x the time of off",
            aim=SETTINGS[name], aim_text=f"{SETTINGS[name]}", better="less")
        for name, found in logs.items()
    ]  # fmt: skip


def _best(rig: Rig, client: Client, text: str) -> dict[str, float]:
    """The fastest run under each setting."""
    runs: dict[str, list[float]] = {"off": [], **{name: [] for name in SETTINGS}}
    for _ in range(rig.rounds):
        for name, found in runs.items():
            client.query(f"SET separable = {name}")
            client.query(text)  # what the setting before has made the engine forget is its, not this one's
            started = time.perf_counter()
            client.query(text)
            found.append(time.perf_counter() - started)
    return {name: min(found) for name, found in runs.items()}
