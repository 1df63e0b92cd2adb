"""Makes a case that fails smaller: without steps, rows and parts of queries that the difference does not need.

A smaller case counts if the same relation still differs in the same way. Removing a step never makes a case invalid:
statements that then fail do so on both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace
from pglast.parser import ParseError

from tests.law.changing.running import Difference
from tests.law.changing.simpler_queries import simpler
from tests.law.changing.steps import Case, Step

#: The difference of a case, if it has one.
Judge = Callable[[Case], Difference | None]

_SECONDS: Final = 240.0


class Shrinking:
    """One case that becomes smaller, for a limited time."""

    def __init__(self, case: Case, found: Difference, judge: Judge) -> None:
        self._case, self._found, self._judge = case, found, judge
        self._end = time.monotonic() + _SECONDS

    def run(self) -> tuple[Case, Difference]:
        """The smallest case that was found, and its difference."""
        self._try(self._case.steps[: self._found.place + 1])
        size = -1
        while size != self._size() and time.monotonic() < self._end:
            size = self._size()
            self._drop_steps()
            self._drop_rows()
            self._simplify_queries()
        return self._case, self._found

    def _size(self) -> int:
        return sum(len(step.statement) + len(step.rows) + 1 for step in self._case.steps)

    def _try(self, steps: tuple[Step, ...]) -> bool:
        """Takes the steps as the case if they differ in the same way."""
        if time.monotonic() > self._end:
            return False
        case = Case(self._case.seed, steps)
        found = self._judge(case)
        if found is None or found.sort != self._found.sort:
            return False
        self._case, self._found = case, found
        return True

    def _drop_steps(self) -> None:
        length = len(self._case.steps)
        while length > 0:
            place = len(self._case.steps) - length
            while place >= 0:
                steps = self._case.steps
                self._try(steps[:place] + steps[place + length :])
                place -= length
            length //= 2

    def _drop_rows(self) -> None:
        for place, step in enumerate(self._case.steps):
            for row in reversed(range(len(step.rows))):
                rows = self._case.steps[place].rows
                if len(rows) > 1:
                    self._replace(place, replace(self._case.steps[place], rows=rows[:row] + rows[row + 1 :]))

    def _simplify_queries(self) -> None:
        for place in range(len(self._case.steps)):
            while any(self._replace(place, step) for step in _simpler(self._case.steps[place])):
                pass

    def _replace(self, place: int, step: Step) -> bool:
        steps = self._case.steps
        return place < len(steps) and self._try((*steps[:place], step, *steps[place + 1 :]))


def _simpler(step: Step) -> Iterator[Step]:
    """A step with parts of its query left out."""
    if step.role == "view":
        head, _, query = step.text.partition(" AS ")
        judged, _, other = (step.judged or "").partition(" AS ")
        if other != query:  # a view with rows that fail
            return
        for text in _texts(query):
            yield replace(step, text=f"{head} AS {text}", judged=f"{judged} AS {text}")
    elif step.role in ("read", "change") and not (step.rows or step.ordered or step.judged):
        for text in _texts(step.text):
            yield replace(step, text=text)


def _texts(query: str) -> Iterator[str]:
    try:
        yield from (text for text in simpler(query) if len(text) < len(query))
    except ParseError:
        return
