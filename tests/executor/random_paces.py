"""Nodes of views that go on at given paces, or at random: each is at a moment of its own until the next read."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from catalog.values.errors import SqlError
from executor.dataflow.waiting_changes import NEVER, Steps
from executor.maintained.kept_rows import Unknown
from executor.maintained.maintained_views import MaintainedViews
from executor.maintained.view_pace import ViewPace
from planner.incremental.dataflow.graph import Dataflow
from planner.incremental.pace_options import PaceOptions


class GivenPace(ViewPace):
    """Nodes go on at steps that a test or benchmark gives."""

    def __init__(self, given: Steps) -> None:
        super().__init__()
        self.given = given

    def is_to_be_chosen(self, options: PaceOptions, changes: int) -> bool:
        """Never."""
        return False

    @property
    def steps(self) -> Steps:
        """Those that are given."""
        return self.given


def _at_random(flow: Dataflow, source: Random) -> Steps:
    """Each node of a dataflow goes on with each row, or with none of a test."""
    return {node.id: source.choice((0, NEVER)) for node in flow.nodes}


def go_on(maintained: MaintainedViews, source: Random) -> int:
    """Brings some nodes of some views forward, where no session is at work with them; how many views have nodes that
    wait."""
    found = 0
    for oid, known in tuple(maintained._known.items()):
        if known.kept is None or known.flow is None or source.random() < 0.5:
            continue
        known.pace = GivenPace(_at_random(known.flow, source))
        with suppress(Unknown, SqlError):  # of a row that fails: the next reader gets it
            maintained.follow(oid, is_whole=False)
            kept = known.kept
            found += kept is not None and kept.rows.is_waiting
    return found
