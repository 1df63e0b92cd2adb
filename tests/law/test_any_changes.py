"""The law for tables that change in any way: a sample of ``python -m tests.law.changing``.

Each case has a schema, views and transactions of its own (``tests/law/changing``). ``--whole`` runs 2,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.law.changing.laboratory import Laboratory, report
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

#: Cases of one test, about 20 seconds of processor time, and of the one that runs without ``--whole``.
SHARE = 25
FEW = 10


@pytest.fixture(scope="module")
def laboratory(postgres: Postgres) -> Iterator[Laboratory]:
    with Laboratory(postgres) as found:
        yield found


@pytest.mark.parametrize("share", sample(range(2000 // SHARE), (0,)))
def test_any_views_over_any_changes(laboratory: Laboratory, share: int, whole: bool) -> None:
    for seed in range(SHARE * share, SHARE * share + (SHARE if whole else FEW)):
        found = laboratory.failure(seed)
        assert found is None, f"\n{report(laboratory, *found)}"


def test_the_sample_reaches_what_it_should(laboratory: Laboratory) -> None:
    """The cases before have read views of most kinds; few were refused."""
    counts = laboratory.counts
    if counts.cases >= 3 * SHARE:
        assert len(counts.constructs) > 80
        assert counts.reads > 10 * counts.cases
        assert sum(counts.refused.values()) < counts.cases
