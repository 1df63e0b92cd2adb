"""Some generated cases of ``python -m tools.compatibility``: no difference from PostgreSQL that is not listed."""

from __future__ import annotations

import pytest

from tests.compatibility.cases import sample
from tests.compatibility.compare import Verdict
from tests.compatibility.comparison import Comparison, Result
from tests.compatibility.known import known
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SEED = 15
SHARE = 0.3
SHARE_ON_SPARK = 0.02


def test_generated_cases_give_what_postgresql_gives(postgres: Postgres) -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        results = compared(Comparison(server.dsn(), postgres.dsn()), SHARE)
    assert sum(item.verdict is Verdict.EQUAL for item in results) > len(results) / 2


@pytest.mark.spark
def test_generated_cases_on_spark_give_what_postgresql_gives(postgres: Postgres, spark_server: Millstream) -> None:
    results = compared(Comparison(spark_server.dsn(), postgres.dsn(), "spark"), SHARE_ON_SPARK)
    assert sum(item.verdict is Verdict.EQUAL for item in results) > len(results) / 3


def compared(comparison: Comparison, share: float) -> list[Result]:
    """The results of a sample, without a difference that is not listed."""
    try:
        results = list(comparison.results(sample(SEED, share)))
    finally:
        comparison.close()
    different = [item for item in results if item.verdict is Verdict.DIFFERENT and known(item.name) is None]
    report = "\n\n".join(f"{item.name}: {item.case.text}\n  {item.found}\n  {item.wanted}" for item in different)
    assert not different, report
    return results
