"""Collected rows that a view compares with now() leave its state once no read needs them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.incremental import clock_bounds
from planner.incremental.plan import plan
from planner.statements.statement import CreateView
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

STREAM = "CREATE FOREIGN TABLE s (k int, at timestamptz, ts timestamp, d date) SERVER stream"
HOUR, DAY = 3_600_000_000, 86_400_000_000


@pytest.mark.parametrize(
    ("condition", "age"),
    [
        ("at > now() - interval '1 hour'", HOUR),
        ("now() - interval '1 day' <= at AND k > 0", DAY),
        ("at BETWEEN now() - interval '2 hours' AND now()", 2 * HOUR),
        ("at + interval '1 hour' > now() - interval '1 hour'", 2 * HOUR),
        ("ts > localtimestamp - interval '1 month 1 day'", 32 * DAY),
        ("ts >= now() - interval '1 hour'", HOUR),
        ("at > now() + interval '1 hour'", None),
        ("at < now() - interval '1 hour'", None),
        ("d > current_date - 7", None),
        ("at > now() - interval '1 hour' OR k = 1", None),
        ("at <> now()", None),
    ],
)
def test_the_age_at_which_rows_leave(tmp_path: Path, condition: str, age: int | None) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(STREAM)
        statement = client.bind(f"CREATE VIEW v AS SELECT k FROM s WHERE {condition}")
        assert isinstance(statement, CreateView)
        expiries = plan(statement.query).program.expiries
        assert [item.age - clock_bounds.MARGIN for item in expiries] == ([] if age is None else [age])
        assert [item.grows for item in plan(statement.query).collected] == [age is None]


def test_a_stream_that_is_also_read_without_the_condition_keeps_its_rows(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(STREAM)
        both = (
            "SELECT a.k FROM s a JOIN s b USING (k) WHERE a.at > now() - interval '{}' AND b.at > now() - interval '{}'"
        )
        for text, count in ((both.format("1 hour", "2 hours"), 1), (both.partition(" AND ")[0].format("1 hour"), 0)):
            statement = client.bind(f"CREATE VIEW v AS {text}")
            assert isinstance(statement, CreateView)
            assert len(plan(statement.query).program.expiries) == count


def test_rows_leave_the_state_and_the_view_stays_its_query(tmp_path: Path) -> None:
    with closing(open_database(tmp_path, maintenance_rows=1, maintenance_idle=0.01)) as database:
        client = Client(database)
        client.run(f"{STREAM}; CREATE VIEW v AS SELECT k FROM s WHERE at > now() - interval '1 hour'")
        assert "after at" in "\n".join(str(row[0]) for row in client.run("EXPLAIN SELECT * FROM v"))
        for step in range(40):
            at = datetime.now(UTC) - timedelta(days=step % 4, minutes=1)
            client.run(f"INSERT INTO s VALUES ({step}, '{at.isoformat()}')")
            wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)])
            if step % 10 == 9:
                client.run("SELECT * FROM v")
        assert sorted(client.run("SELECT k FROM v")) == [(step,) for step in range(0, 40, 4)]
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        assert sorted(client.run("SELECT k FROM v")) == [(step,) for step in range(0, 40, 4)]
        ((rows,),) = client.run("SELECT rows FROM millstream.states")
        assert rows < 40
