"""The law as a property: over random streams, views, batches, restarts and engines, continuous = from scratch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from tests.law.scenario import Action, Scenario, scenarios
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import examples
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

NUMBERS = count()
QUICK = settings(
    max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[*HealthCheck], print_blob=True
)
FEW = settings(QUICK, max_examples=9)
READS: tuple[Action, ...] = ("read", "dimension")


@pytest.fixture(scope="module")
def embedded(postgres: Postgres) -> Iterator[Mirror]:
    """One server with the embedded engine only; every example has its own stream and view."""
    chosen = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 7, "maintenance_idle": 0.05}
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as mirror:
        yield mirror


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[Mirror]:
    """One server with Spark behind it."""
    chosen = {"maintenance_rows": 5, "maintenance_idle": 0.2}
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as mirror:
        server.wait_for_spark()
        yield mirror


@given(scenario=scenarios(READS))
@QUICK
def test_any_view_over_any_batches(embedded: Mirror, scenario: Scenario) -> None:
    play(embedded, scenario)


@given(scenario=scenarios((*READS, "restart", "crash")))
@FEW
def test_any_view_over_restarts(embedded: Mirror, scenario: Scenario) -> None:
    play(embedded, scenario)


@pytest.mark.spark
@given(scenario=scenarios((*READS, "spark", "spark", "embedded", "auto", "settle", "settle")))
@FEW
def test_any_view_over_engine_switches(both: Mirror, scenario: Scenario) -> None:
    play(both, replace(scenario, steps=("spark", *scenario.steps, "settle")))


@pytest.mark.spark
def test_spark_did_its_part(both: Mirror) -> None:
    """Spark has maintained some of the scenarios with engine switches."""
    assert both.jobs("spark") >= FEW.max_examples // 2


def play(mirror: Mirror, scenario: Scenario) -> None:
    """Runs the scenario on both sides, compares at every read and at the end, and drops its objects."""
    number = next(NUMBERS)
    stream, dimension, view = f"s{number}", f"d{number}", f"v{number}"
    mirror.views.clear()
    windows = scenario.windows
    watermark = f"OPTIONS (watermark '{windows.column} - interval ''1 hour''')" if windows else ""
    mirror.stream(stream, scenario.declaration, watermark)
    mirror.table(dimension, "id integer PRIMARY KEY, label text")
    mirror.insert(dimension, scenario.dimension, one_statement=True)
    # PostgreSQL's sort for a grouping is not stable, so there the order of arrival is a column and explicit.
    mirror.judge.execute(f"ALTER TABLE {stream} ADD COLUMN arrival bigserial".encode())
    mirror.judge.execute(f"ALTER TABLE {stream} ADD COLUMN tx bigint DEFAULT txid_current()".encode())
    by_transactions = windows is not None and not windows.slide
    options = windows.options if windows else ""
    mirror.view(view, scenario.query(stream, dimension), scenario.query(stream, dimension, "arrival"), options)
    try:
        mirror.check()
        for position, step in enumerate(scenario.steps):
            if isinstance(step, tuple):
                mirror.insert(stream, step, one_statement=position % 2 == 0 or by_transactions)
            else:
                act(mirror, scenario, step, view, dimension)
        mirror.check()
    finally:
        for statement in (f"DROP VIEW {view}", f"DROP FOREIGN TABLE {stream}", f"DROP TABLE {dimension}"):
            mirror.client.execute(statement.encode())
        mirror.judge.execute(f"DROP TABLE {stream}, {dimension}".encode())


def _rows_behind(mirror: Mirror, view: str) -> int:
    row = mirror.client.execute("SELECT rows_behind FROM millstream.views WHERE name = %s", (view,)).fetchone()
    assert row is not None
    return int(row[0])


def act(mirror: Mirror, scenario: Scenario, action: Action, view: str, dimension: str) -> None:
    """Runs one step other than rows. A table that the view reads once, as of its creation, does not change."""
    match action:
        case "read":
            mirror.check()
        case "settle":
            wait_until(lambda: _rows_behind(mirror, view) == 0, 120, "maintenance that has caught up")
        case "restart" | "crash":
            mirror.restart(crash=action == "crash")
        case "dimension":
            found = mirror.client.execute("SELECT tables FROM millstream.views WHERE name = %s", (view,)).fetchone()
            if found != ("frozen",):
                for connection in (mirror.client, mirror.judge):
                    connection.execute(f"UPDATE {dimension} SET label = label || '!' WHERE id < 3".encode())
        case engine:
            mirror.client.execute(f"ALTER VIEW {view} SET (maintenance_engine = '{engine}')".encode())
