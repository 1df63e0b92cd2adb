"""The options that say when a view follows changes: their texts, and the moments of a trigger."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from catalog.values.errors import SqlError
from planner.incremental.pace_options import PaceOptions, Trigger, pace_options, read_trigger, require_together
from tests.planner.binding import standard

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("rows 1000000", Trigger(rows=1_000_000)),
        ("every 1 hour", Trigger(seconds=3600.0)),
        ("Every  90 seconds", Trigger(seconds=90.0)),
        ("at 06:00", Trigger(minute=360)),
        ("at 6:05", Trigger(minute=365)),
        ("on read", Trigger(on_read=True)),
    ],
)
def test_triggers(text: str, trigger: Trigger) -> None:
    assert read_trigger(text, None) == trigger


@pytest.mark.parametrize(
    ("sqlstate", "text"),
    [
        ("22023", "rows 0"),
        ("22023", "rows -5"),
        ("22023", "at 24:00"),
        ("22023", "at noon"),
        ("22023", "every 2 months"),
        ("22023", "every 2 days"),
        ("22023", "every 0 s"),
        ("22007", "every now and then"),
        ("22023", "sometimes"),
    ],
)
def test_what_is_no_trigger(sqlstate: str, text: str) -> None:
    with pytest.raises(SqlError) as error:
        read_trigger(text, 7)
    assert (error.value.sqlstate, error.value.position) == (sqlstate, 7)


def test_options() -> None:
    assert pace_options({}) == PaceOptions()
    assert pace_options({"latency_goal": "200 ms"}) == PaceOptions(latency=200.0)
    both = pace_options({"final_work": "0.1", "trigger": "at 06:00"})
    assert both == PaceOptions(final=0.1, trigger=Trigger(minute=360))
    assert both.has_goal
    assert not pace_options({"trigger": "on read"}).has_goal


@pytest.mark.parametrize(
    "options",
    [
        {"latency_goal": "1 s", "final_work": "0.1"},
        {"final_work": "0.1", "total_work": "2"},
        {"latency_goal": "1 s", "trigger": "on read"},
    ],
)
def test_goals_exclude_each_other(options: dict[str, str]) -> None:
    with pytest.raises(SqlError, match="exclude each other") as error:
        require_together(options, {})
    assert error.value.sqlstate == "22023"


@pytest.mark.parametrize(
    "text",
    [
        "(latency_goal = '1 s', /**/final_work = 0.1, method = 'auto')",
        "(method = 'auto', total_work = 2, /**/final_work = 0.1, security_barrier)",
        "(trigger = 'on read', method = 'auto', /**/latency_goal = '1 s', retention = '1 day')",
        "(latency_goal = '1 s', /**/trigger = 'on read', method = 'auto')",
    ],
)
def test_the_later_of_two_options_that_exclude_each_other_is_named(text: str) -> None:
    text = f"CREATE VIEW v WITH {text} AS SELECT 1"
    with pytest.raises(SqlError, match="exclude each other") as error:
        standard().bind(text)
    assert error.value.position == text.index("/**/") + 5


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        (datetime(2026, 6, 1, 5, tzinfo=BERLIN), 1.0),
        (datetime(2026, 6, 1, 6, tzinfo=BERLIN), 24.0),
        (datetime(2026, 6, 1, 7, tzinfo=BERLIN), 23.0),
        (datetime(2026, 3, 28, 6, tzinfo=BERLIN), 23.0),  # summer time begins that night
        (datetime(2026, 10, 24, 6, tzinfo=BERLIN), 25.0),
    ],
)
def test_the_next_time_of_day(now: datetime, hours: float) -> None:
    assert Trigger(minute=360).seconds_after(now) == hours * 3600


def test_an_interval_is_the_same_at_any_time() -> None:
    assert Trigger(seconds=90.0).seconds_after(datetime.now(BERLIN)) == 90.0
