"""``millstream.decisions``: what was decided of views, why, and what that has taken since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.maintained import decisions, known_view, maintained_views, read_costs
from executor.maintained.decisions import COMPUTED, Decision, Decisions
from tests.executor.client import Client, open_database

ASKED = "SELECT view, chosen, rejected, reason, estimated IS NOT NULL, measured IS NOT NULL FROM millstream.decisions"
QUERY = "SELECT name, sum(amount) AS s FROM sales JOIN shops USING (shop) GROUP BY name"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def client(database: Database) -> Client:
    client = Client(database)
    client.run("CREATE TABLE sales (shop int, amount int); CREATE TABLE shops (shop int PRIMARY KEY, name text)")
    client.run("INSERT INTO shops SELECT i, 'shop ' || i % 2 FROM generate_series(1, 4) i")
    client.run("INSERT INTO sales SELECT i % 4 + 1, i FROM generate_series(1, 4000) i")
    return client


def test_what_was_compared(client: Client) -> None:
    client.run(f"CREATE MATERIALIZED VIEW totals WITH (method = 'incremental') AS {QUERY}")
    assert client.run(ASKED) == []
    client.run("SELECT * FROM totals")
    (found,) = client.run(ASKED)
    assert found[0] == "totals" and "higher-order views" in found[1]
    assert found[2:] == ("by changes (plain deltas)", "it has method = 'incremental'", True, False)
    for _ in range(3):
        client.run("UPDATE shops SET name = name || 'x' WHERE shop = 1")
        client.run("SELECT * FROM totals")
    assert client.run(ASKED) == [(*found[:5], True)]
    cheaper = "SELECT count(*) FROM millstream.decisions WHERE estimated < estimated_rejected"
    assert client.run(cheaper) == [(1,)]
    client.run("DROP MATERIALIZED VIEW totals")
    assert client.run(ASKED) == []


def test_one_way_to_follow_changes_is_compared_with_recomputation(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW n WITH (method = 'delta') AS SELECT shop, count(*) FROM sales GROUP BY shop")
    client.run("SELECT * FROM n")
    assert client.run(ASKED) == [("n", "by changes", COMPUTED, "it has method = 'delta'", False, False)]


def test_rows_that_are_given_up(database: Database, client: Client) -> None:
    client.run(f"CREATE MATERIALIZED VIEW totals WITH (method = 'incremental') AS {QUERY}")
    client.run("SELECT * FROM totals")
    maintained = database.read_services.maintained
    (known,) = maintained._known.values()
    maintained._lose(known, "for a test")
    *_, (_, chosen, _, reason, _, _) = client.run(f"{ASKED} ORDER BY decided_at")
    assert (chosen, reason) == (COMPUTED, "for a test")


def test_rows_that_would_not_fit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    monkeypatch.setattr(read_costs, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(read_costs, "OUTLAY_SECONDS", 0.0)
    monkeypatch.setattr(known_view, "most_bytes", lambda core: 10)
    client.run(f"CREATE MATERIALIZED VIEW totals AS {QUERY}")
    for _ in range(4):
        client.run("INSERT INTO sales VALUES (1, 1); SELECT * FROM totals")
    ((view, chosen, _, reason, _, _),) = client.run(ASKED)
    assert (view, chosen) == ("totals", COMPUTED) and "kB of memory" in reason


def test_past_decisions_keep_what_they_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST", 2)
    now = 1.0
    found = Decisions(lambda view, chosen: now)
    for number in range(4):
        found.note(Decision(7, f"way {number // 2}", None, "a reason"))  # the standing one is not noted again
        now += 1
    assert [(item.chosen, item.measured) for item in found.all()] == [("way 0", 3.0), ("way 1", 5.0)]
    found.forget(7)
    assert [item.chosen for item in found.all()] == ["way 0"]
