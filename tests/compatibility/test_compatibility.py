"""Some generated cases of ``python -m tools.compatibility``: no difference from PostgreSQL that is not listed."""

from __future__ import annotations

import pytest

from tests.compatibility.compare import Verdict
from tests.compatibility.comparison import Comparison, sample
from tests.compatibility.known import known
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SEED = 15
SHARE = 0.4


def test_generated_cases_give_what_postgresql_gives(postgres: Postgres) -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        comparison = Comparison(server.dsn(), postgres.dsn())
        try:
            results = list(comparison.results(sample(SEED, SHARE)))
        finally:
            comparison.close()
    different = [item for item in results if item.verdict is Verdict.DIFFERENT and known(item.name) is None]
    report = "\n\n".join(f"{item.name}: {item.case.text}\n  {item.found}\n  {item.wanted}" for item in different)
    assert not different, report
    assert sum(item.verdict is Verdict.EQUAL for item in results) > len(results) / 2
