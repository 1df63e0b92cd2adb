"""What of a query's work leaves its server with it, decided by cost (thesis, sections 6.2.3 and 6.4.3).

Owns: the price of each way out between two pipelines, in seconds, and the choice of the cheapest (``decide``).

    move    the state, and what the rest reads of tables, to the storage and back
    redo    a smaller state, older in whole or in part, or none, and the time of what has to be computed again
    wait    the time of the pipeline that comes next, and what there is to carry after it

Whatever is carried, to leave and to go on costs a ``latency`` (manifest, syncs, planning): a query that has less to do
than that ends where it is. A result that is dear to carry and cheap to compute (a join's build side over one table) is
computed again, the one that took long is carried. A pipeline that runs is always waited for: an engine that is
interrupted loses its snapshot. Knows no engine; what results are like and how long they take, measured or estimated, is
passed in as a ``Forecast``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal

from msgspec import Struct

from planner.algebra.nodes import Relation
from planner.separation.cuts import Pipelined, remaining, select_state

#: move the state, redo a part of it elsewhere, or wait for the pipeline that comes next.
Way = Literal["move", "redo", "wait"]
#: Seconds that a pipeline takes at least: its statement is planned, and its result gets a table.
LEAST: Final = 0.002


class Forecast(Struct, frozen=True):
    """Of each pipeline, by name, the rows and bytes of its result and the seconds that it takes; the bytes that a plan
    reads of tables and views; how many bytes a second go to the storage and back, and the seconds that leaving takes
    besides."""

    rows: Mapping[str, float]
    sizes: Mapping[str, float]
    seconds: Mapping[str, float]
    read: Callable[[Relation], float]
    bandwidth: float
    latency: float = 0.0

    def time(self, name: str) -> float:
        """A pipeline's seconds."""
        return max(LEAST, self.seconds.get(name, 0.0))


class Decision(Struct, frozen=True):
    """How a query leaves: with the results of these ``finished`` pipelines alone. ``size`` are the bytes that are
    carried then, ``price`` are seconds."""

    way: Way
    finished: frozenset[str]
    size: float
    price: float


def decide(
    plan: Pipelined, finished: Collection[str], available: Collection[str], forecast: Forecast, may_wait: bool = True
) -> Decision:
    """The cheapest way out of a server behind some finished pipelines, of which the ``available`` have their results
    still. At equal prices the one that keeps more work."""
    done = frozenset(finished)
    moved = _carried("move", plan, done, forecast)
    restarted = _carried("redo", plan, frozenset(), forecast, sum(map(forecast.time, done)))
    ways = [moved, _redone(plan, done, available, forecast, moved), restarted]
    ways += [_waited(plan, done, forecast)] if may_wait else []
    left = sum(forecast.time(name) for name in plan.names if name not in done)
    ended = Decision("wait", frozenset(plan.names), 0.0, left)
    return ended if may_wait and ended.price <= forecast.latency else min(ways, key=lambda item: item.price)


def _carried(way: Way, plan: Pipelined, finished: frozenset[str], forecast: Forecast, seconds: float = 0.0) -> Decision:
    """A way out with a state, after so many seconds of work for it."""
    left, names = remaining(plan, finished)
    size = sum(forecast.sizes.get(name, 0.0) for name in names) + forecast.read(left)
    return Decision(way, finished, size, forecast.latency + seconds + size / forecast.bandwidth)


def _waited(plan: Pipelined, finished: frozenset[str], forecast: Forecast) -> Decision:
    """The way out after the next pipeline; after the last one nothing is left to carry."""
    name = next(item for item in plan.names if item not in finished)
    more, seconds = finished | {name}, forecast.time(name)
    if name == plan.names[-1]:
        return Decision("wait", more, 0.0, seconds)
    return _carried("wait", plan, more, forecast, seconds)


def _redone(
    plan: Pipelined, finished: frozenset[str], available: Collection[str], forecast: Forecast, best: Decision
) -> Decision:
    """The best way out with less than the state: results are left behind one after the other while that pays."""
    while True:
        state = select_state(plan.pipelines, best.finished)
        fewer = (_without(plan, name, best.finished, available) for name in state)
        found = [
            _carried("redo", plan, less, forecast, sum(map(forecast.time, finished - less)))
            for less in dict.fromkeys(fewer)
        ]
        cheapest = min(found, key=lambda item: item.price, default=best)
        if cheapest.price >= best.price:
            return best
        best = cheapest


def _without(plan: Pipelined, name: str, finished: frozenset[str], available: Collection[str]) -> frozenset[str]:
    """The finished pipelines where one's result is left behind, and with it what only it could be computed from."""
    by_name = {item.name: item for item in plan.pipelines}
    lost, pending = {name}, [name]
    while pending:
        for below in by_name[pending.pop()].reads:
            if below in finished and below not in available and below not in lost:
                lost.add(below)
                pending.append(below)
    return finished - lost
