"""Runs a query's pipelines one after the other, on one connection and over one snapshot of the tables.

Owns: how long results are kept, and the work between two pipelines or two slices, when requests for the query's state
are answered. An error in a pipeline may not be the query's error: the whole query might never evaluate the failing part
(a subquery that no row needs). So the caller runs the query again as a whole, which decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

import pyarrow as pa
from msgspec import Struct, field

from catalog.values.errors import SqlError
from executor.embedded.pipeline_results import Kept
from executor.separation.forecasts import Forecasting
from executor.separation.results import Results
from executor.separation.running_queries import Request, RunningQuery, unknown
from executor.separation.slices import Sliced
from planner.algebra.nodes import Relation, Snapshot
from planner.separation.carried_state import LEAST, Decision, decide
from planner.separation.cuts import Pipeline, Pipelined, remaining, select_state
from planner.separation.slicing import Leaf, merged, rest

#: Takes a query's state to storage: the query, the plan that continues, the results that it reads by name, where they
#: are kept, and the request.
Extract = Callable[[RunningQuery, Relation, dict[str, Relation], Results, Request], None]


class Moved(Exception):
    """The query continues on another server."""

    def __init__(self, query_id: str) -> None:
        super().__init__(query_id)
        self.query_id = query_id


class NotInSteps(Exception):
    """A pipeline failed, which does not mean that the whole query fails."""


class Stepwise(Struct):
    """One run of a query in steps."""

    plan: Pipelined
    slices: Mapping[str, Sliced]
    query: RunningQuery
    results: Results
    extract: Extract
    forecasting: Forecasting
    _kept: dict[str, Kept] = field(default_factory=dict)
    _finished: set[str] = field(default_factory=set)
    #: The seconds that finished pipelines took.
    _took: dict[str, float] = field(default_factory=dict)

    def run(self) -> pa.Table:
        """The query's rows. Raises 57014 if it was suspended or cancelled, Moved, and NotInSteps."""
        self.query.measure = self.results.progress
        try:
            return self._run()
        except SqlError as error:
            if error.sqlstate == "57014":
                raise
            raise NotInSteps from error
        finally:
            self.query.measure = unknown

    def _run(self) -> pa.Table:
        by_name = {item.name: item for item in self.plan.pipelines}
        for pipeline in self.plan.pipelines[:-1]:
            started = time.monotonic()
            self._keep(pipeline)
            self._took[pipeline.name] = time.monotonic() - started
            self._finished.add(pipeline.name)
            for name in self._kept.keys() - self._needed():
                self.results.drop(by_name[name].result)
                del self._kept[name]
            self.query.advance(*self._sizes())
            self._answer(self.plan, {})
        last = self.plan.pipelines[-1]
        return self.results.rows(last.relation, last.name)

    def _keep(self, pipeline: Pipeline) -> None:
        """Runs a pipeline; between two slices, requests for the query's state are answered."""
        sliced = self.slices.get(pipeline.name)
        if sliced is None:
            readers = [item.relation for item in self.plan.pipelines if pipeline.name in item.reads]
            self._kept[pipeline.name] = self.results.keep(pipeline.result, pipeline.relation, readers)
            return
        for share, low, high in sliced.bounds(self.results):
            self.query.until = share
            part = partial(sliced.of, self.results.number, pipeline.relation)
            self._kept[pipeline.name] = self.results.add(pipeline.result, part, low, high)
            if share < 1:
                self.query.advance_slice(share, *self._sizes())
                self._answer(*self._within(pipeline, sliced.leaf, high))

    def _leaving(self, request: Request, is_inside: bool) -> Collection[str] | None:
        """The finished pipelines with whose results the query leaves, within a pipeline all of them; None if it is
        better to wait for the running pipeline."""
        if not request.by_cost or is_inside:
            return None if request.is_waiting else self._finished
        decision = self._decided(may_wait=request.wish != "checkpoint")
        request.way = decision.way
        return None if decision.way == "wait" else decision.finished

    def _within(self, pipeline: Pipeline, leaf: Leaf, low: int) -> tuple[Pipelined, dict[str, Relation]]:
        """The plan within a pipeline: the rows gathered so far, and the computation of the rows from a number on. Also
        returns the gathered rows by name."""
        part = pipeline.place
        by_result = {item.name: item.place for item in self.plan.pipelines if item.breaker != "shared"}
        place = by_result.get(leaf.trace, leaf) if isinstance(leaf, Snapshot) else leaf
        whole = rest(self.plan.whole, part, (place, leaf, low), pipeline.result, self.results.number)
        return Pipelined(whole, self.plan.pipelines), {pipeline.name: merged(part, pipeline.result)}

    def _needed(self) -> set[str]:
        """The results that unfinished pipelines read, or those with which continuing elsewhere is cheaper."""
        state = set(select_state(self.plan.pipelines, self._finished))
        size = sum(self._kept[name].size for name in state)
        if self._kept.keys() == state or size < LEAST * self.forecasting.bandwidth:
            return state  # redoing them saves less than carrying this result costs
        return state | set(select_state(self.plan.pipelines, self._decided(may_wait=False).finished))

    def _decided(self, may_wait: bool) -> Decision:
        """How the query would leave now."""
        forecast = self.forecasting.forecast(self._kept, self._took)
        return decide(self.plan, self._finished, self._kept, forecast, may_wait)

    def _sizes(self) -> tuple[int, int]:
        """The rows and bytes of the kept results."""
        return sum(item.rows for item in self._kept.values()), sum(item.size for item in self._kept.values())

    def _answer(self, plan: Pipelined, begun: dict[str, Relation]) -> None:
        """Answers requests for the state, including the slices that have ``begun``. Raises 57014 if the query is to be
        suspended, and Moved."""
        asked = self.query.asked()
        try:
            for request in asked:
                self._give(request, plan, begun)
        except BaseException:
            for request in asked:
                self.query.dismiss(request)
            raise

    def _give(self, request: Request, plan: Pipelined, begun: dict[str, Relation]) -> None:
        finished = self._leaving(request, bool(begun))
        if finished is None:
            self.query.postpone(request)
            return
        left, names = remaining(plan, finished)
        by_name = {item.name: item.result for item in plan.pipelines}
        state = {**{name: by_name[name] for name in names}, **begun}
        try:
            self.extract(self.query, left, state, self.results, request)
        except SqlError as error:
            request.answer(False, error)
            if error.sqlstate == "57014":
                raise
            return
        request.answer(True)
        if request.wish == "suspend":
            self.query.is_suspended = True
            raise suspended(self.query.id)
        if request.wish == "migrate":
            raise Moved(self.query.id)


def suspended(query_id: str) -> SqlError:
    """The error for the waiting client."""
    hint = f"SELECT * FROM millstream.resume('{query_id}') gives the rows."
    return SqlError("57014", f'query "{query_id}" was suspended', hint=hint)
