"""Results that depend on the session's time zone are the same in views, in tables that views join, and in COPY's
checks."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: Times before, in and after the repeated hour.
MOMENTS = ["2024-10-26 23:50+00", "2024-10-27 00:10+00", "2024-10-27 00:50+00", "2024-10-27 01:10+00", None]


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as found:
        for side in (found.client, found.judge):
            side.execute("SET timezone = 'Europe/Prague'")
        yield found


def test_hours_of_the_end_of_summer_time_stay_two_in_a_view(mirror: Mirror) -> None:
    mirror.stream("meas", "ts timestamptz")
    mirror.view("hours", "SELECT date_trunc('hour', ts) AS h, count(*) FROM meas GROUP BY 1")
    mirror.view("minutes", "SELECT date_trunc('minute', ts, 'Australia/Lord_Howe') AS m, count(*) FROM meas GROUP BY 1")
    mirror.view(
        "days", "SELECT date_trunc('day', ts) AS d, extract(hour FROM ts) AS h, count(*) FROM meas GROUP BY 1, 2"
    )
    for moment in MOMENTS:
        mirror.insert("meas", [(moment,)], one_statement=True)
    mirror.check()


def test_a_table_that_a_view_joins_is_read_in_the_session_s_zone(mirror: Mirror) -> None:
    mirror.table("side", "ts timestamptz")
    mirror.insert("side", [(moment,) for moment in MOMENTS], one_statement=True)
    mirror.stream("days", "d date")
    mirror.view(
        "joined",
        "SELECT d, h, count(*) FROM days JOIN (SELECT ts::date AS day, extract(hour FROM ts) AS h FROM side) s "
        "ON day = d GROUP BY d, h",
    )
    mirror.insert("days", [("2024-10-26",), ("2024-10-27",), ("2024-10-27",)], one_statement=True)
    mirror.check()


def test_copy_checks_rows_in_the_session_s_zone(mirror: Mirror) -> None:
    mirror.table("checked", "ts timestamptz CHECK (ts::date = '2024-10-27')")
    mirror.copy("checked", b"2024-10-26 22:00+00\n2024-10-27 22:59+00\n")
    mirror.views["checked"] = "SELECT * FROM checked"
    mirror.check()
    for side in (mirror.client, mirror.judge):
        with (
            side.cursor() as cursor,
            pytest.raises(psycopg.errors.CheckViolation),
            cursor.copy("COPY checked FROM STDIN") as copy,
        ):
            copy.write(b"2024-10-27 23:00+00\n")
