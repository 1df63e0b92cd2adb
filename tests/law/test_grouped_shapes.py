"""The law for random groupings over joins, set operations and groupings, including several grouping sets.

The tables exist before the views and do not change; the streams grow in random batches, and the server is stopped and
killed in between. A refused shape raises 0A000, never another error.
"""

from __future__ import annotations

import random

import psycopg
import pytest

from tests.planner.test_grouped_shapes import READ_TWICE
from tests.rig.grouped_shapes import STREAMS, TABLES, shape
from tests.rig.mirror import mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_VIEWS = 24


@pytest.mark.parametrize("share", sample(range(20), (0,)))
def test_groupings_of_any_shape(postgres: Postgres, share: int) -> None:
    source = random.Random(share)
    texts = [*READ_TWICE, *(shape(seed) for seed in range(_VIEWS * share, _VIEWS * (share + 1)))]
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 20}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        for table in TABLES:
            mirror.table(table, "item integer, n integer")
            mirror.insert(table, [_row(source, 2) for _ in range(6)], one_statement=True)
        for stream in STREAMS:
            mirror.stream(stream, "d integer, site integer, v integer")
        for number, text in enumerate(texts):
            try:
                mirror.view(f"v{number}", text)
            except psycopg.errors.FeatureNotSupported:
                continue
        assert len(mirror.views) > _VIEWS // 2
        mirror.check()
        for step in range(4):
            for stream in STREAMS:
                mirror.insert(stream, [_row(source, 3) for _ in range(source.choice((1, 2, 15)))], one_statement=True)
            mirror.check()
            if step in (1, 2):
                mirror.restart(crash=step == 1)
        mirror.check()


def _row(source: random.Random, width: int) -> list[int | None]:
    return [None if source.random() < 0.1 else source.randint(0, 4) for _ in range(width)]
