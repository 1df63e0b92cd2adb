"""Views whose nodes go on at paces of their own: for goals, at triggers, and at random, equal to their queries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.maintained.kept_rows import KeptRows
from executor.maintained.known_view import KnownView
from executor.small import table_of
from tests.executor.client import Client, open_database
from tests.executor.random_paces import go_on
from tests.executor.test_maintained_views import change
from tests.executor.view_queries import MAINTAINED, PARTLY, TABLES, bag, names
from tests.rig.process import wait_until
from tests.rig.sampling import sample

TOTALS = "SELECT region, count(*) n, sum(v) s FROM orders o JOIN shops ON shops.id = o.shop GROUP BY region"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def orders(database: Database, options: str) -> Client:
    """A view of 2,000 orders in 20 shops, whose rows are kept."""
    client = Client(database)
    client.run("CREATE TABLE shops (id int PRIMARY KEY, region int)")
    client.run("CREATE TABLE orders (id int PRIMARY KEY, shop int, v int)")
    client.run("INSERT INTO shops SELECT i, i % 5 FROM generate_series(1, 20) i")
    client.run("INSERT INTO orders SELECT i, i % 20 + 1, i FROM generate_series(1, 2000) i")
    client.run(f"CREATE MATERIALIZED VIEW v WITH (method = 'incremental', {options}) AS {TOTALS}")
    client.run("SELECT * FROM v")
    return client


def known_of(database: Database) -> KnownView:
    (found,) = database.maintained._known.values()
    return found


def kept_of(database: Database) -> KeptRows:
    found = known_of(database).kept
    assert found is not None
    return found


def is_followed(database: Database) -> bool:
    """Whether the view's rows are those of the last change, before anybody reads it."""
    kept = kept_of(database)
    with database.core.sequencer.lock:
        return kept.lsn == database.core.sequencer.visible and not kept.rows.is_waiting


def is_read_in(database: Database) -> bool:
    """Whether the changes are known to the view, wherever they wait."""
    with database.core.sequencer.lock:
        return kept_of(database).lsn == database.core.sequencer.visible


@pytest.mark.parametrize("seed", sample(range(8), (0, 1)))
def test_views_whose_nodes_go_on_at_random_equal_their_queries(database: Database, seed: int, whole: bool) -> None:
    drawn, client, queries = random.Random(seed), Client(database), MAINTAINED + PARTLY
    client.run(TABLES)
    for place, query in enumerate(queries):
        option = "method = 'incremental', trigger = 'on read'"
        client.run(f"CREATE MATERIALIZED VIEW v{place}{names(client, query)} WITH ({option}) AS {query}")
    waited = 0
    for _ in range(12 if whole else 4):
        for _ in range(drawn.randint(1, 4)):
            client.run(change(drawn))
            waited += go_on(database.maintained, drawn)
        for place, query in enumerate(queries):
            if drawn.random() < 0.4:
                assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(query)), query
    assert waited > 10


def test_changes_of_a_view_are_whole_whatever_waited(database: Database) -> None:
    client = orders(database, "trigger = 'on read'")
    drawn = random.Random(1)
    client.run("SELECT * FROM v")
    before = client.run("SELECT * FROM v")
    after = kept_of(database).reached
    for step in range(20):
        client.run(f"UPDATE orders SET shop = {step % 20 + 1}, v = {step} WHERE id = {step + 1}")
        go_on(database.maintained, drawn)
    now = client.run("SELECT * FROM v")
    changes = kept_of(database).changes(after)
    assert changes is not None
    rows = [tuple(row.values()) for part in changes for row in table_of(part).to_pylist()]
    assert isinstance(before, list)
    assert isinstance(now, list)
    sums = dict.fromkeys(before, 1)
    for *row, weight in rows:
        sums[tuple(row)] = sums.get(tuple(row), 0) + weight
    assert {row for row, weight in sums.items() if weight} == set(now)


def test_a_reader_computes_anew_what_is_dearer_to_follow(database: Database) -> None:
    client, maintained = orders(database, "trigger = 'on read'"), database.maintained
    known, before = known_of(database), kept_of(database)
    assert known.flow is not None
    for _ in range(2):
        with known.costs.computing():
            client.run(TOTALS)
    known.choose_pace(database.core, maintained.statistics(known.flow))
    assert known.pace.chosen is not None
    known.pace.chosen = replace(known.pace.chosen, at_once=((4_000, 1e6), (3_000, 1e-6)))
    evaluations = known.costs.totals["evaluation"].count
    client.run("UPDATE orders SET v = v + 1 WHERE id <= 1500")
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(TOTALS))
    assert (known.costs.totals["evaluation"].count, before.rows.is_waiting) == (evaluations, False)
    client.run("UPDATE orders SET v = v + 1")
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(TOTALS))
    assert (known.costs.totals["evaluation"].count, before.rows.is_waiting) == (evaluations + 1, True)
    client.run("UPDATE orders SET v = v + 1 WHERE id = 7")
    assert bag(client.run("SELECT * FROM v")) == bag(
        client.run(TOTALS)
    )  # nothing follows before reads, so this one does
    assert (known.costs.totals["evaluation"].count, before.rows.is_waiting) == (evaluations + 1, False)
    assert known.kept is before


def test_nothing_is_followed_before_a_read(database: Database) -> None:
    client = orders(database, "trigger = 'on read'")
    client.run("UPDATE orders SET v = v + 1")
    assert not database.maintained._following._paced
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(TOTALS))


def test_rows_are_followed_once_there_are_so_many(database: Database) -> None:
    client = orders(database, "trigger = 'rows 100'")
    for step in range(2):
        client.run(f"UPDATE orders SET v = v + 1 WHERE id BETWEEN {20 * step + 1} AND {20 * step + 20}")
        wait_until(lambda: is_read_in(database))
        assert not is_followed(database)
    client.run("UPDATE orders SET v = v + 1 WHERE id BETWEEN 101 AND 110")
    wait_until(lambda: is_followed(database))  # an update counts as two rows, one that goes and one that comes
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(TOTALS))


def test_all_is_followed_when_it_is_time(database: Database) -> None:
    client = orders(database, "trigger = 'every 300 ms'")
    for _ in range(3):
        client.run("UPDATE orders SET v = v + 1 WHERE id < 10")
        wait_until(lambda: is_followed(database))
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(TOTALS))


def test_paces_are_chosen_for_the_goal_and_again_where_a_read_misses_it(database: Database) -> None:
    client = orders(database, "latency_goal = '3 ms'")
    wait_until(
        lambda: client.run("UPDATE orders SET v = v + 1 WHERE id < 10") and known_of(database).pace.chosen is not None
    )
    chosen = known_of(database).pace.chosen
    assert chosen is not None
    assert chosen.are_met
    assert chosen.goal.called == "latency_goal = 3 ms"
    known_of(database).pace.read(50.0)
    assert client.run("SELECT goal, meets_goal FROM millstream.views") == [("latency_goal = 3 ms", False)]
    wait_until(
        lambda: client.run("UPDATE orders SET v = v + 1 WHERE id < 10") and known_of(database).pace.chosen is not chosen
    )
    (((goal, _),), lines) = client.run("SELECT goal, meets_goal FROM millstream.views"), client.run("EXPLAIN TABLE v")
    assert goal == "latency_goal = 3 ms"
    assert any("Goal: latency_goal = 3 ms: reads find at most" in line for (line,) in lines)
    assert any("Goes On: " in line for (line,) in lines)


def test_a_view_gets_another_goal(database: Database) -> None:
    client = orders(database, "latency_goal = '3 ms'")
    client.run("ALTER VIEW v RESET (latency_goal)")
    client.run("ALTER VIEW v SET (total_work = 1.5)")
    assert client.run("SELECT goal, meets_goal FROM millstream.views") == [("total_work = 1.5", None)]
    client.run("SELECT * FROM v")
    wait_until(
        lambda: client.run("UPDATE orders SET v = v + 1 WHERE id < 10") and known_of(database).pace.chosen is not None
    )
    wait_until(lambda: client.run("SELECT goal, meets_goal FROM millstream.views") == [("total_work = 1.5", True)])


@pytest.mark.parametrize(
    ("options", "goal"),
    [
        ("latency_goal = '10 s'", "latency_goal = 10000 ms"),
        ("final_work = 0.5", "final_work = 0.5"),
        ("total_work = 1", "total_work = 1"),
        ("trigger = 'rows 7'", None),
        ("trigger = 'on read'", None),
    ],
)
def test_explain_shows_the_paces_for_other_options_before_the_next_step(
    database: Database, options: str, goal: str | None
) -> None:
    client = orders(database, "latency_goal = '3 ms'")
    wait_until(
        lambda: client.run("UPDATE orders SET v = v + 1 WHERE id < 10") and known_of(database).pace.chosen is not None
    )
    database.maintained._following.close()
    before, known = _shown_pace(client), known_of(database)
    client.run(f"ALTER VIEW v RESET (latency_goal); ALTER VIEW v SET ({options})")
    assert client.run("SELECT goal, meets_goal FROM millstream.views") == [(goal, None)]
    shown = _shown_pace(client)
    assert shown != before
    assert known.is_to_be_paced()
    assert known.flow is not None
    known.choose_pace(database.core, database.maintained.statistics(known.flow))
    assert _shown_pace(client) == shown


def _shown_pace(client: Client) -> list[str]:
    """What EXPLAIN says of when a view's nodes go on."""
    lines = (line.strip() for (line,) in client.run("EXPLAIN TABLE v") if isinstance(line, str))
    return [line for line in lines if line.startswith(("Followed: ", "Trigger: ", "Goal: ", "Goes On: "))]


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ("latency_goal = '100 us'", "the goal latency_goal = 0.1 ms is not expected to be met"),
        ("final_work = 0.00001", "the goal final_work = 1e-05 is not expected to be met"),
        ("latency_goal = '1 h'", None),
        ("total_work = 1", None),
        ("trigger = 'rows 1'", None),
        ("method = 'recompute', trigger = 'rows 1'", 'the option trigger has no effect on view "v"'),
        ("method = 'recompute', trigger = 'on read'", None),
        ("method = 'recompute', latency_goal = '1 h'", 'the option latency_goal has no effect on view "v"'),
    ],
)
def test_a_goal_that_cannot_be_met_is_a_warning(database: Database, options: str, warning: str | None) -> None:
    client = Client(database)
    client.run(TABLES)
    client.run(
        f"CREATE MATERIALIZED VIEW v WITH ({options}) AS SELECT g, count(*), sum(w) OVER (ORDER BY sum(w)) FROM"
        " (SELECT a.g, b.w FROM a JOIN b USING (k) JOIN c USING (k)) q GROUP BY g, w"
    )
    assert client.notices == ([] if warning is None else [warning])


def test_options_that_exclude_each_other_are_refused(database: Database) -> None:
    client = orders(database, "latency_goal = '3 ms'")
    for sqlstate, statement in (
        ("22023", "ALTER VIEW v SET (final_work = 0.1)"),
        ("22023", "ALTER VIEW v SET (trigger = 'on read')"),
        ("0A000", f"CREATE VIEW w WITH (final_work = 0.1) AS {TOTALS}"),
    ):
        with pytest.raises(SqlError) as error:
            client.run(statement)
        assert error.value.sqlstate == sqlstate
