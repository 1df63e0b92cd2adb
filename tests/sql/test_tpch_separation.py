"""All queries of TPC-H pipeline by pipeline: what they give, and what they give where they leave after any pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.separation import choosing
from tests.executor.test_separation import outcome, separable
from tests.executor.test_separation import whole as as_a_whole
from tests.rig.tpch import TABLES, Tpch
from tests.sql.leaving import Servers, leaves_everywhere, servers

pytestmark = pytest.mark.slow

QUERIES = sorted(Path(__file__).with_name("tpch").glob("q*.sql"), key=lambda path: int(path.stem[1:]))
SCALE = 0.01


@pytest.fixture(scope="module")
def both(tpch: Tpch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("tpch-separation"), TABLES, lambda name: tpch.csv(SCALE, name)) as found:
        yield found


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_leaves_after_every_pipeline(
    path: Path, both: Servers, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at all sides of joins of several tables; with ``--whole`` at breakers alone, too."""
    monkeypatch.setattr(choosing, "LONG", 0.0)
    client, query = separable(both.source), path.read_text()
    wanted = as_a_whole(client, query)
    for cut in (0, 1) if whole else (1,):
        monkeypatch.setattr(choosing, "_PROBED", 0 if cut else 1 << 60)
        monkeypatch.setattr(choosing, "_SMALLER", 0 if cut else 1)
        assert outcome(client, query) == wanted
        leaves_everywhere(both, query, wanted, monkeypatch)
