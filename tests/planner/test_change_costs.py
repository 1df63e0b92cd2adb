"""Estimated changes: the cases of InQP's section 3.1 as numbers, and dataflows whose estimates are those of their
definitions."""

from __future__ import annotations

from typing import Final

import pytest

from catalog.objects import Table
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import Relation, Scan
from planner.algebra.walk import walk
from planner.explain.dataflows import Expected, NodeFacts, explain_dataflow
from planner.incremental.cost.cardinalities import ChangeCardinality, touched
from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.incremental.cost.dataflow_costs import node_estimates, step_of
from planner.incremental.cost.flow_sizes import FlowSizes, kept_bytes
from planner.incremental.cost.usual_changes import change_in_words, usual_changes
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.incremental.dataflow.planning import dataflow_of, joined
from planner.rules import optimise, unnest
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import ColumnStatistics, Statistics, TableStatistics
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of

CATALOG = catalog_of(
    (
        "CREATE TABLE orders (id int PRIMARY KEY, buyer int, day int, amount int)",
        "CREATE TABLE buyers (id int PRIMARY KEY, region int)",
        "CREATE TABLE notes (buyer int, text text)",
    )
)
OIDS: Final = {item.name: oid for oid, item in CATALOG.objects.items() if isinstance(item, Table)}


def _table(rows: float, key: str = "", **distinct: float) -> TableStatistics:
    keys = (frozenset((key,)),) if key else ()
    return TableStatistics(rows, {name: ColumnStatistics(number) for name, number in distinct.items()}, keys)


#: 10,000 orders on 100 days by 1,000 buyers in 10 regions; 500 notes on 400 buyers.
STATISTICS: Final[Statistics] = {
    OIDS["orders"]: _table(10_000, "id", id=10_000, buyer=1_000, day=100, amount=100),
    OIDS["buyers"]: _table(1_000, "id", id=1_000, region=10),
    OIDS["notes"]: _table(500, buyer=400),
}
INSERTED, UPDATED, DELETED = ChangedRows(inserted=1.0), ChangedRows(updated=1.0), ChangedRows(deleted=1.0)


def changes_of(query: str, table: str, change: ChangedRows) -> ChangedRows:
    relation = optimise(unnest(query_of(query, CATALOG).relation))
    cardinality = Cardinality(relation, STATISTICS)
    return ChangeCardinality(relation, cardinality, {OIDS[table]: change}).of(relation)


CASES: Final[dict[str, tuple[str, str, ChangedRows, ChangedRows]]] = {
    "a filter passes each kind by its share": (
        "SELECT id FROM orders WHERE day = 5", "orders", ChangedRows(100, 0, 200), ChangedRows(1, 0, 2),
    ),
    "a few of the updates that pass a filter only come, or only go": (
        "SELECT id FROM orders WHERE day = 5", "orders", ChangedRows(updated=100), ChangedRows(0.01, 0.99, 0.01),
    ),
    "a projection passes all": ("SELECT day + 1 AS x FROM orders", "orders", UPDATED, UPDATED),
    "a row of a saturated group updates it": (
        "SELECT day, count(*) FROM orders GROUP BY day", "orders", INSERTED, UPDATED,
    ),
    "a row that is its group comes and goes with it": (
        "SELECT id, max(day) FROM orders GROUP BY id", "orders", ChangedRows(2, 1, 3), ChangedRows(2, 1, 3),
    ),
    "many rows update each group once": (
        "SELECT day, count(*) FROM orders GROUP BY day", "orders",
        ChangedRows(inserted=2_000), ChangedRows(0.2, 100, 0),
    ),
    "a group of all rows is updated once": ("SELECT count(*) FROM orders", "orders", ChangedRows(5, 5, 5), UPDATED),
    "a row meets its one partner": (
        "SELECT o.id FROM orders o JOIN buyers b ON b.id = o.buyer AND b.region > 0 + b.id * 0",
        "orders", ChangedRows(inserted=3), ChangedRows(inserted=1),
    ),
    "a partner meets all of its rows": (
        "SELECT o.id, b.region FROM orders o JOIN buyers b ON b.id = o.buyer", "buyers", DELETED,
        ChangedRows(deleted=10),
    ),
    "a left row is there once, with or without a partner": (
        "SELECT o.id, b.region FROM orders o LEFT JOIN buyers b ON b.id = o.buyer", "orders", INSERTED, INSERTED,
    ),
    "two changed tables add up": ("SELECT id FROM orders UNION ALL SELECT id FROM buyers", "buyers", DELETED, DELETED),
    "what is not read changes nothing": ("SELECT id FROM orders", "buyers", INSERTED, NO_CHANGES),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_changes_of_operators(case: str) -> None:
    query, table, change, wanted = CASES[case]
    found = changes_of(query, table, change)
    assert (found.inserted, found.updated, found.deleted) == pytest.approx(
        (wanted.inserted, wanted.updated, wanted.deleted), rel=0.05, abs=0.01
    )


def test_a_partner_takes_the_place_of_an_unmatched_row() -> None:
    """Half of the buyers have no note, about: (1 - 1/400) ** 500 is 0.29."""
    left = "SELECT b.id, n.text FROM buyers b LEFT JOIN notes n ON n.buyer = b.id"
    found = changes_of(left, "notes", INSERTED)
    assert found.inserted == pytest.approx(1.0, rel=0.01)  # a note has one buyer
    assert found.deleted == pytest.approx(changes_of(left, "notes", DELETED).inserted)
    assert 0 < found.deleted < found.inserted
    missing = "SELECT b.id FROM buyers b WHERE NOT EXISTS (SELECT FROM notes n WHERE n.buyer = b.id)"
    anti = changes_of(missing, "notes", INSERTED)
    assert (anti.inserted, anti.deleted) == pytest.approx((0.0, found.deleted))
    present = "SELECT b.id FROM buyers b WHERE EXISTS (SELECT FROM notes n WHERE n.buyer = b.id)"
    semi = changes_of(present, "notes", INSERTED)
    assert (semi.inserted, semi.deleted) == pytest.approx((found.deleted, 0.0))


def test_a_first_row_pushes_another_one_out() -> None:
    found = changes_of("SELECT id FROM orders ORDER BY id LIMIT 100", "orders", ChangedRows(1, 1, 1))
    assert (found.inserted, found.updated, found.deleted) == pytest.approx((0.02, 0.01, 0.02), rel=0.05)


def test_touched_groups() -> None:
    assert touched(1.0, 5.0) == 1.0
    assert touched(1e9, 3.0) == pytest.approx(3.0)
    assert touched(10.0, 1e6) == pytest.approx(10.0)
    assert touched(2.0, 2.0) == pytest.approx(1.5)


def test_a_key_of_both_sides_finds_one_pair() -> None:
    """A row meets one pair of a cross join by a key of each side."""
    query = (
        "SELECT o.id FROM (SELECT b.id, n.id AS other FROM buyers b, orders n) pairs"
        " JOIN orders o ON o.buyer = pairs.id AND o.amount = pairs.other"
    )
    relation = optimise(unnest(query_of(query, CATALOG).relation))
    assert Cardinality(relation, STATISTICS).rows(relation) == pytest.approx(10_000)


def test_counted_rows_are_not_estimated() -> None:
    relation = optimise(query_of("SELECT id FROM orders WHERE amount > day", CATALOG).relation)
    counted = Cardinality(relation, STATISTICS, [(relation, 77.0)])
    assert counted.rows(relation) == 77


# -- dataflows ---------------------------------------------------------------------------------------------------------


def flow_of(query: str) -> Dataflow:
    found = dataflow_of(joined(query_of(query, CATALOG).relation), "v").dataflow
    assert found is not None
    return found


REGIONS = "SELECT region, count(*), sum(amount) FROM orders o JOIN buyers b ON b.id = o.buyer GROUP BY region"


def test_what_is_usual_without_measurements_is_an_update_of_the_largest_table() -> None:
    flow = flow_of(REGIONS)
    found = usual_changes(flow, STATISTICS, {})
    assert change_in_words(flow, found) == "orders: 1 updated row"


def test_what_is_usual_is_what_has_been_measured() -> None:
    flow = flow_of(REGIONS)
    orders, buyers = (node.id for node in flow.nodes if isinstance(node, Source))
    work = {
        orders: Work(4, Step(), Step(inserted=8, deleted=4)),
        buyers: Work(1, Step(), Step(inserted=1, deleted=1)),
    }
    found = usual_changes(flow, STATISTICS, work)
    assert found == {orders: ChangedRows(1.0, 1.0, 0.0), buyers: ChangedRows(updated=0.25)}
    assert change_in_words(flow, found) == "orders: 1 inserted, 1 updated rows; buyers: 0.25 updated rows"


def test_measured_time_corrects_the_estimate() -> None:
    flow = flow_of(REGIONS)
    changed = usual_changes(flow, STATISTICS, {})
    plain = node_estimates(FlowSizes(flow, STATISTICS, {}), changed, {})
    node = max(plain)
    slow = Work(2, Step(), Step(read=4, inserted=2, deleted=2, milliseconds=20.0))
    corrected = node_estimates(FlowSizes(flow, STATISTICS, {}), changed, {node: slow})
    assert corrected[node].milliseconds == pytest.approx(10.0, rel=0.3)
    assert corrected[node].changes.rows == pytest.approx(plain[node].changes.rows)


def test_measured_rows_correct_the_estimate() -> None:
    flow = flow_of(REGIONS)
    sizes, changed = FlowSizes(flow, STATISTICS, {}), usual_changes(flow, STATISTICS, {})
    plain = node_estimates(sizes, changed, {})
    nodes = sorted(plain)
    source, node = next(item for item in nodes if item in changed), max(nodes)
    few = Step(read=2, inserted=0, deleted=0, milliseconds=0.1)
    work = {source: Work(10, few, Step(inserted=10, deleted=10)), node: Work(10, few, Step(20, 1, 1, 1.0))}
    corrected = node_estimates(sizes, changed, work)
    assert corrected[node].changes.rows == pytest.approx(0.2)
    ten = {key: item.times(10) for key, item in changed.items()}
    assert 0.2 < node_estimates(sizes, ten, work)[node].changes.rows <= 2.0  # of ten groups, some change twice


def test_what_changes_take_is_told_by_those_with_fewer_and_more_rows() -> None:
    work = Work().after(Step(inserted=10, milliseconds=500.0))  # it made plans
    for rows, milliseconds in ((10, 1.0), (10, 3.0), (1_000, 12.0)):
        work = work.after(Step(inserted=rows, milliseconds=milliseconds))
    assert work.around(100) == ((10, 2.0), (1_000, 12.0))
    assert work.around(5) == (None, (10, 2.0))
    assert work.around(5_000) == ((1_000, 12.0), None)
    flow = flow_of(REGIONS)
    sizes, changed = FlowSizes(flow, STATISTICS, {}), usual_changes(flow, STATISTICS, {})
    (source,) = changed
    half_way = {source: changed[source].times(505 / changed[source].rows)}
    assert node_estimates(sizes, half_way, {source: work}, {})[source].milliseconds == pytest.approx(7.0)
    beyond = {source: changed[source].times(100_000 / changed[source].rows)}
    assert node_estimates(sizes, beyond, {source: work}, {})[source].milliseconds > 100


def test_memory_of_kept_rows() -> None:
    """10,000 orders and 1,000 buyers by one key each, beside their own index, and 10 groups."""
    orders, buyers = 2 * 4 + 8 + 2 * 12, 2 * 4 + 8 + 2 * 12
    found = kept_bytes(flow_of(REGIONS), STATISTICS, {})
    assert found == pytest.approx(10_000 * orders + 1_000 * buyers, rel=0.01)
    fewer = kept_bytes(flow_of(REGIONS), STATISTICS, {0: 1_000})
    assert fewer < found / 4


@pytest.mark.parametrize(
    ("name", "query"),
    {
        "join": REGIONS,
        "outer": "SELECT b.id, n.text FROM buyers b LEFT JOIN notes n ON n.buyer = b.id",
        "distinct": "SELECT day, count(DISTINCT buyer) FROM orders GROUP BY day HAVING count(*) > 5",
        "first": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
        "window": "SELECT id, sum(amount) OVER (PARTITION BY buyer ORDER BY id) FROM orders",
        "extremes": "SELECT region, max(amount) FROM orders o JOIN buyers b ON b.id = o.buyer GROUP BY region",
    }.items(),
)
def test_estimates_of_dataflows(name: str, query: str, rewrite: bool) -> None:
    planned = dataflow_of(joined(query_of(query, CATALOG).relation), "v")
    flow = planned.dataflow
    assert flow is not None
    lines = [query]
    for source in (node.id for node in flow.nodes if isinstance(node, Source)):
        changed = {source: ChangedRows(1.0, 10.0, 1.0)}
        found = node_estimates(FlowSizes(flow, STATISTICS, {}), changed, {})
        steps = {node: step_of(estimate) for node, estimate in found.items()}
        facts = NodeFacts(expected=Expected(change_in_words(flow, changed), steps, 0.0, 0.0))
        lines += ["", *explain_dataflow(planned, facts)[1:]]
    golden.check(f"change_costs/{name}", lines, rewrite)


def test_every_relation_has_an_estimate() -> None:
    relation: Relation = optimise(unnest(query_of(REGIONS, CATALOG).relation))
    found = ChangeCardinality(relation, Cardinality(relation, STATISTICS), {OIDS["orders"]: UPDATED})
    seen = NodeMap[ChangedRows]((node, found.of(node)) for node in walk(relation) if isinstance(node, Scan))
    assert len(seen) == 2
