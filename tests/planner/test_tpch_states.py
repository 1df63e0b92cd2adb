"""Which streams' rows the states of TPC-H's views keep, as docs/continuous-views.md says."""

from __future__ import annotations

import pytest

from planner.incremental.plan import plan
from planner.statements.statement import CreateView
from tests.planner.binding import Database
from tests.rig.benchmarks import queries
from tests.rig.tpch import create

#: By the streams, the streams whose rows are collected, by query; of the others the states have groups alone.
COLLECTED = {
    ("lineitem",): {"q17": {"lineitem"}, "q18": {"lineitem"}, "q21": {"lineitem"}},
    ("lineitem", "orders"): {
        **dict.fromkeys(
            ("q3", "q4", "q5", "q7", "q8", "q9", "q10", "q12", "q18", "q21"), frozenset(("lineitem", "orders"))
        ),
        "q17": {"lineitem"},
    },
}


@pytest.mark.parametrize("streams", COLLECTED)
def test_rows_are_collected_of_these_streams_alone(streams: tuple[str, ...]) -> None:
    database = Database(";".join(create(streams=streams)))
    found: dict[str, set[str]] = {}
    for path in queries("tpch"):
        text = path.read_text(encoding="utf-8").strip().rstrip(";")
        created = database.bind(f"CREATE VIEW v AS {text}").statement
        assert isinstance(created, CreateView)
        collected = plan(created.query).collected if created.view.keeps_rows else ()
        if collected:
            found[path.stem] = {item.stream for item in collected}
    assert found == COLLECTED[streams]
