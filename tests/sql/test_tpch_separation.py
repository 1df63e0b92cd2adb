"""All queries of TPC-H pipeline by pipeline: their rows, also if they leave after any pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.separation import steps
from tests.executor.separating import Leaving, cut_small, leave, outcome, separable
from tests.executor.separating import whole as as_a_whole
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES, Tpch
from tests.sql.leaving import Servers, leaves_everywhere, servers

pytestmark = pytest.mark.slow

QUERIES = queries("tpch")
SCALE = 0.01


@pytest.fixture(scope="module")
def both(tpch: Tpch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("tpch-separation"), TABLES, lambda name: tpch.csv(SCALE, name)) as found:
        yield found


@pytest.mark.sample(5)
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_leaves_after_every_pipeline(
    path: Path, both: Servers, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at all sides of joins of several tables; with ``--whole`` also at breakers only."""
    monkeypatch.setattr(steps, "LONG", 0.0)
    monkeypatch.setattr(steps, "_REPEATED", 0)
    client, query = separable(both.source), path.read_text()
    wanted = as_a_whole(client, query)
    for cut in (0, 1) if whole else (1,):
        monkeypatch.setattr(steps, "_PROBED", 0 if cut else 1 << 60)
        monkeypatch.setattr(steps, "_SMALLER", 0 if cut else 1)
        assert outcome(client, query) == wanted
        leaves_everywhere(both, query, wanted, monkeypatch)


@pytest.mark.sample(8)
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_leaves_inside_its_pipelines(path: Path, both: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a stop between two slices of an aggregation's input, or two pipelines, and again on its way."""
    monkeypatch.setattr(steps, "LONG", 0.0)
    cut_small(monkeypatch)
    client, query = separable(both.source), path.read_text()
    wanted = as_a_whole(client, query)
    for stops in ((1, 3), (2,), (4, 5)):
        with monkeypatch.context() as patch:
            seen = Leaving(patch, *stops)
            query_id = leave(client, query)
            if query_id is None:
                break
            found = None
            while found is None:
                try:
                    found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
                except SqlError as error:
                    assert error.sqlstate == "57014", error
        assert (found if "order by" in query else sorted(found)) == wanted, stops
        assert path.stem not in ("q1", "q6") or seen.slices
