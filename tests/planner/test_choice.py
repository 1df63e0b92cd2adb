"""The choice among the alternatives of a dataflow: what is compared, what decides, and what EXPLAIN says of it."""

from __future__ import annotations

from typing import Final

import pytest

from planner.algebra.nodes import Relation, Scan
from planner.explain.dataflows import NodeFacts, explain_dataflow
from planner.incremental.cost import choice
from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.choice import (
    ALIKE,
    ALIKE_MS,
    Alternative,
    Followed,
    alternatives_of,
    has_alternatives,
    rewritings_of,
    saved_by_choice,
)
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.usual_changes import Mix, Seen, mix_of, weighed
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.graph import Source
from planner.incremental.dataflow.planning import joined
from planner.incremental.dataflow.rewrites.rewriting import ALTERNATIVES, PLAIN
from planner.statistics import ColumnStatistics, TableStatistics
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of

CATALOG: Final = catalog_of(
    (
        "CREATE TABLE sales (id int PRIMARY KEY, shop int, day int, v int)",
        "CREATE TABLE shops (id int PRIMARY KEY, name text, region int)",
        "CREATE TABLE visits (id int PRIMARY KEY, shop int, day int)",
    )
)
OIDS: Final = {item.name: item.oid for item in CATALOG.objects.values()}
ROWS: Final = {"sales": 2_000_000.0, "shops": 50.0, "visits": 500_000.0}
DISTINCT: Final = {
    "sales": {"id": 2_000_000.0, "shop": 50.0, "day": 1_000.0},
    "shops": {"id": 50.0, "region": 5.0},
    "visits": {"id": 500_000.0, "shop": 50.0, "day": 1_000.0},
}
STATISTICS: Final = {
    OIDS[name]: TableStatistics(
        rows,
        {column: ColumnStatistics(number) for column, number in DISTINCT[name].items()},
        (frozenset(("id",)),),
    )
    for name, rows in ROWS.items()
}
STAR: Final = "SELECT name, sum(v) FROM sales s JOIN shops ON shops.id = shop GROUP BY name"
ASKING: Final = "SELECT id, v FROM sales s WHERE EXISTS (SELECT FROM visits v WHERE v.shop = s.shop AND v.day = s.day)"
#: Bytes that are enough for all rows.
ROOM: Final = 4e9


def relation_of(query: str) -> Relation:
    return joined(query_of(query, CATALOG).relation)


def alternatives(query: str, mix: Mix | None = None, most: float = ROOM) -> tuple[Alternative, ...]:
    relation = relation_of(query)
    return alternatives_of(Followed(relation, "v"), rewritings_of(relation), STATISTICS, mix or {}, most)


def often(name: str) -> Mix:
    """Nothing but rows of one table has changed."""
    return {OIDS[name]: Seen(100_000, ChangedRows(updated=1.0))}


def test_rewritings_that_change_nothing_are_no_alternatives() -> None:
    single = "SELECT shop, sum(v) FROM sales GROUP BY shop"
    assert not has_alternatives(relation_of(single)) and rewritings_of(relation_of(single)) == [PLAIN]
    assert rewritings_of(relation_of(STAR)) == [item for item in ALTERNATIVES if item.partners is None]
    assert rewritings_of(relation_of(ASKING)) == [item for item in ALTERNATIVES if item.views is None]
    (only,) = alternatives("SELECT s.shop, max(s.v) FROM sales s JOIN visits v ON v.id = s.id GROUP BY s.shop")
    assert only.rewriting == PLAIN and only.milliseconds == 0


@pytest.mark.parametrize("query", [STAR, ASKING])
def test_the_chosen_one_takes_least(query: str) -> None:
    for name in ROWS:
        chosen, *others = alternatives(query, often(name))
        least = min(item.milliseconds for item in (chosen, *others))
        assert chosen.milliseconds <= max(ALIKE * least, least + ALIKE_MS)
        assert [item.milliseconds for item in others] == sorted(item.milliseconds for item in others)


def test_what_changes_decides() -> None:
    by_shops, by_sales = (alternatives(STAR, often(name)) for name in ("shops", "sales"))
    assert by_shops[0].rewriting.views is not None
    assert saved_by_choice(by_shops, PLAIN) > 10
    assert saved_by_choice(by_sales, PLAIN) < 1
    assert alternatives(STAR)[0].rewriting == by_shops[0].rewriting  # what is not known changes as often as the rest


def test_of_those_that_take_as_long_the_smallest_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, small = alternatives(STAR, often("sales"))
    assert fast.memory > small.memory
    monkeypatch.setattr(choice, "ALIKE", 1.01 * small.milliseconds / fast.milliseconds)
    assert alternatives(STAR, often("sales")) == (small, fast)


def test_what_does_not_fit_comes_last() -> None:
    most = 40e6
    for mix in ({}, often("sales"), often("visits")):
        found = alternatives(ASKING, mix, most)
        assert [item.fits for item in found] == [True, False]
        assert [item.memory <= most for item in found] == [True, False]


def test_changes_are_weighed_by_how_often_they_come() -> None:
    flow = alternatives(STAR)[0].planned.dataflow
    assert flow is not None
    sources = {
        node.definition.name: node.id
        for node in flow.nodes
        if isinstance(node, Source) and isinstance(node.definition, Scan)
    }
    work = {sources["sales"]: Work(8, Step(), Step(0, 24, 8, 1.0))}
    mix = mix_of(flow, work)
    assert mix == {OIDS["sales"]: Seen(8, ChangedRows(inserted=2.0, updated=1.0))}
    shares = {node: share for share, change in weighed(flow, mix) for node in change}
    assert shares == {sources["sales"]: 0.9, sources["shops"]: 0.1}
    assert FlowSizes(flow, STATISTICS, {}).rows(sources["sales"]) == ROWS["sales"]


@pytest.mark.parametrize(("name", "query"), [("star", STAR), ("asking", ASKING)])
def test_explain_shows_what_was_compared(name: str, query: str, rewrite: bool) -> None:
    found = alternatives(query)
    lines = [query, "", *explain_dataflow(found[0].planned, NodeFacts(alternatives=found))]
    golden.check(f"choice/{name}", lines, rewrite)
