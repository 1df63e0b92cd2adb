"""Queries of TPC-DS pipeline by pipeline: their rows, also if they leave after any pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.separation import steps
from tests.executor.separating import outcome, separable
from tests.executor.separating import whole as as_a_whole
from tests.rig.benchmarks import queries, read
from tests.rig.sampling import sample
from tests.rig.tpcds import TABLES, Tpcds
from tests.sql.leaving import Servers, leaves_everywhere, servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUERIES = queries("tpcds")
SCALE = 0.1
#: WITH read twice, scalar subqueries, ROLLUP, windows over windows, UNION, EXISTS.
CHOSEN = [path for path in QUERIES if path.stem in ("q1", "q9", "q44", "q60", "q86", "q95")]


@pytest.fixture(scope="module")
def both(tpcds: Tpcds, tmp_path_factory: pytest.TempPathFactory, whole: bool) -> Iterator[Servers]:
    tables = read(TABLES, QUERIES if whole else CHOSEN)
    with servers(tmp_path_factory.mktemp("tpcds"), tables, lambda name: tpcds.csv(SCALE, name)) as found:
        yield found


@pytest.mark.parametrize("path", sample(QUERIES, CHOSEN), ids=lambda path: path.stem)
def test_a_query_leaves_after_every_pipeline(path: Path, both: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "LONG", 0.0)
    monkeypatch.setattr(steps, "_REPEATED", 0)
    monkeypatch.setattr(steps, "_PROBED", 1 << 60)  # cut at breakers only
    client, query = separable(both.source), path.read_text()
    wanted = as_a_whole(client, query)
    assert isinstance(wanted, list)
    assert wanted
    assert outcome(client, query) == wanted
    leaves_everywhere(both, query, wanted, monkeypatch)
