"""A query's pipelines one after the other, on one connection and over one snapshot of the tables.

Owns: which results are kept how long, and what happens between two pipelines: whoever asks for the query's state gets
it now. What an engine raises before the end is not taken for the query's error: evaluated whole, the query may never
have come to it (a subquery that no row asks for). So the caller runs it again as a whole, and that says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from catalog.errors import SqlError
from executor.embedded.kept import Kept, KeptResults
from executor.separation.running import Request, RunningQuery
from planner.algebra import Relation
from planner.separation import Pipelined, remaining, select_state

#: Takes a query's state to storage: the plan that goes on and what it reads, by name, and of which there is no more.
Extract = Callable[[RunningQuery, Relation, dict[str, Relation], KeptResults, Request], None]


class Moved(Exception):
    """A query goes on on another server."""

    def __init__(self, query_id: str) -> None:
        super().__init__(query_id)
        self.query_id = query_id


class NotInSteps(Exception):
    """A pipeline failed, which the whole query may not."""


@dataclass(frozen=True, slots=True)
class Stepwise:
    """One run of a query."""

    plan: Pipelined
    query: RunningQuery
    results: KeptResults
    extract: Extract

    def run(self) -> pa.Table:
        """The query's rows. Raises 57014 where it was suspended or cancelled, Moved, and NotInSteps."""
        try:
            return self._run()
        except SqlError as error:
            if error.sqlstate == "57014":
                raise
            raise NotInSteps from error

    def _run(self) -> pa.Table:
        kept: dict[str, Kept] = {}
        finished: set[str] = set()
        by_name = {item.name: item for item in self.plan.pipelines}
        for pipeline in self.plan.pipelines[:-1]:
            kept[pipeline.name] = self.results.keep(pipeline.result, pipeline.relation)
            finished.add(pipeline.name)
            state = select_state(self.plan.pipelines, finished)
            for name in kept.keys() - set(state):
                self.results.drop(by_name[name].result)
                del kept[name]
            self.query.advance(sum(item.rows for item in kept.values()), sum(item.size for item in kept.values()))
            for request in self.query.asked():
                self._answer(request, finished)
        last = self.plan.pipelines[-1]
        return self.results.rows(last.relation, last.name)

    def _answer(self, request: Request, finished: set[str]) -> None:
        """Extracts the state. Raises 57014 where the query was to be suspended, and Moved."""
        left, names = remaining(self.plan, finished)
        by_name = {item.name: item.result for item in self.plan.pipelines}
        try:
            self.extract(self.query, left, {name: by_name[name] for name in names}, self.results, request)
        except SqlError as error:
            request.answer(False, error)
            if error.sqlstate == "57014":
                raise
            return
        request.answer(True)
        if request.wish == "suspend":
            raise suspended(self.query.id)
        if request.wish == "migrate":
            raise Moved(self.query.id)


def suspended(query_id: str) -> SqlError:
    """What the client hears who waits for the rows."""
    hint = f"SELECT * FROM millstream.resume('{query_id}') gives the rows."
    return SqlError("57014", f'query "{query_id}" was suspended', hint=hint)
