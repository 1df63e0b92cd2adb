"""The law for streams and what stands on them: a sample of ``python -m tests.law.changing``, of its cases with streams.

In a file of its own, so that it runs beside ``test_any_changes``. Views of streams are also maintained in the
background, leave out rows that fail or come late, meet tables as rows arrive, and migrate to another server and back.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.law.changing.laboratory import Laboratory, report
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

#: Cases of one test, about 12 seconds of processor time.
SHARE = 50
#: How many tests there are, and how many run without ``--whole``.
SHARES = 50
FEW = 20


@pytest.fixture(scope="module")
def laboratory(postgres: Postgres) -> Iterator[Laboratory]:
    with Laboratory(postgres) as found:
        yield found


@pytest.mark.parametrize("share", sample(range(SHARES), range(FEW)))
def test_any_views_of_streams(laboratory: Laboratory, share: int) -> None:
    found = laboratory.failure_of_share(share, SHARE, with_streams=True)
    assert found is None, f"\n{report(laboratory, *found)}"


def test_the_sample_reaches_what_it_should(laboratory: Laboratory) -> None:
    """The cases before have read views of most kinds; few were refused."""
    counts = laboratory.counts
    if counts.cases >= FEW * SHARE:
        assert len(counts.constructs) > 140
        assert counts.reads > 3 * counts.cases
        assert sum(counts.refused.values()) < counts.cases / 10
