"""Runs a case on both databases and compares every answer.

Millstream gets each statement first. A view that it refuses is left out on both sides. A statement of one session
may wait for another's locks, which are not the same in both databases: if only one of the two answers is
about locks or serialization, the session's block is rolled back on both sides.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct, field

from tests.law.changing.answers import Answer, difference
from tests.law.changing.known import harmless
from tests.law.changing.servers import Ours
from tests.law.changing.sessions import Theirs
from tests.law.changing.steps import SESSIONS, Case, Step

#: Lock not available, serialization failure, deadlock.
_BESIDE: Final = ("55P03", "40001", "40P01")
_REFUSED: Final = "0A000"
#: PostgreSQL replaces a view with another policy, whose columns may lose the modifiers of their types.
_OTHER_COLUMNS: Final = "42P16"
_FROZEN: Final = ("is joined below", "is read as of the view's creation")


class Difference(Struct, frozen=True):
    """A step whose answers differ; ``place`` is its place in the case."""

    place: int
    step: Step
    report: str
    found: Answer
    wanted: Answer

    @property
    def sort(self) -> tuple[str, str, str, str]:
        """What is equal if two differences probably have one cause."""
        return self.step.role, self.step.name, self.found.state, self.wanted.state


class Counts(Struct):
    """What cases have reached."""

    cases: int = 0
    reads: int = 0
    constructs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Has also reached what another one has."""
        self.cases += other.cases
        self.reads += other.reads
        self.constructs += other.constructs
        self.refused += other.refused
        self.passed_over += other.passed_over


class Run:
    """One case on two databases."""

    def __init__(self, ours: Ours, theirs: Theirs, case: Case, counts: Counts) -> None:
        self._ours, self._theirs, self._case, self._counts = ours, theirs, case, counts
        #: Sessions whose block was rolled back, until their next BEGIN.
        self._gone: set[int] = set()
        #: Views that have not been compared yet, and all.
        self._views: dict[str, Step] = {}
        self._made: set[str] = set()
        self._is_over = False

    def difference(self) -> Difference | None:
        """The first difference, if any."""
        self._ours.begin()
        self._ours.complaints.take()
        self._theirs.begin()
        self._counts.cases += 1
        for place, step in enumerate(self._case.steps):
            found = self._taken(place, step) or self._logged(place, step)
            if found is not None or self._is_over:
                return found
        return None

    def _logged(self, place: int, step: Step) -> Difference | None:
        """What a thread of Millstream has logged as an error."""
        text = self._ours.complaints.take()
        if not text:
            return None
        return Difference(place, Step("maintain", ""), text, Answer("XX000", message=text), Answer(""))

    def _taken(self, place: int, step: Step) -> Difference | None:
        match step.role:
            case "restart":
                self._restart(step.server)
                return None
            case "maintain":
                self._counts.constructs["maintenance"] += 1
                self._counts.constructs["jobs of Spark"] += self._ours.maintain()
                return None
            case "migrate":
                return self._migrated(place, step)
            case "read" if step.server and self._ours.server_of(step.name) != step.server:
                return None
            case "read" if step.judged is not None:  # of what a view has left out, up to now
                if step.name not in self._made:
                    return None
                self._ours.sessions[0].answer(f"SELECT * FROM {step.name}")
        self._counts.constructs["some nodes go on, others wait"] += self._ours.go_on(f"{place} {step.text}")
        if step.session in self._gone:
            if not step.text.startswith("BEGIN"):
                return None
            self._gone.discard(step.session)
        session = self._ours.session(step.session, step.server)
        session.notices.clear()
        found = session.answer(step.statement, step.data)
        if step.role == "own":
            self._counts.constructs.update(step.constructs)
            return _broken(place, step, found)
        if found.state == _REFUSED:
            self._refuse(step, found)
            return None
        if step.role == "view" and any(text in item for item in session.notices for text in _FROZEN):
            self._counts.passed_over["views of tables as of the view's creation"] += 1
            session.answer(f"DROP VIEW {step.name}")
            return None
        wanted = self._theirs.answer(step.session, step.for_judge, step.data)
        return self._compared(place, step, found, wanted)

    def _migrated(self, place: int, step: Step) -> Difference | None:
        """A view that goes to another server, or cannot."""
        found = self._ours.migrate(step.name, step.server)
        if found is None:  # it is there, or does not exist
            return None
        if not found.state:
            self._counts.constructs[f"migration to {'another server' if step.server else 'its home'}"] += 1
        elif found.state == _REFUSED:
            self._counts.refused[f"migrate: {found.message}"] += 1
        elif found.state[:2] == "22":
            self._counts.passed_over["migrations of views that have failed"] += 1
        else:
            return Difference(place, step, f"found    {found}\nexpected a migration", found, Answer(""))
        return None

    def _compared(self, place: int, step: Step, found: Answer, wanted: Answer) -> Difference | None:
        if step.role in ("table", "view", "alter") and not found.state and not wanted.state:  # their tags differ
            self._counts.constructs.update(step.constructs if step.role == "alter" else ())
            if step.role == "view":
                self._views[step.name] = step
                self._made.add(step.name)
            return None
        if step.role == "alter" and not found.state and wanted.state == _OTHER_COLUMNS:
            self._counts.passed_over["policies whose query has columns of other types in PostgreSQL"] += 1
            self._is_over = True
            return None
        report = difference(found, wanted, step.ordered)
        if report is None:
            if not found.state:
                self._count(step)
            return None
        if found.state != wanted.state and (found.state in _BESIDE or wanted.state in _BESIDE):
            side = "Millstream" if found.state in _BESIDE else "PostgreSQL"
            self._counts.passed_over[f"statements with {found.state or wanted.state} of {side}"] += 1
            self._give_up(step, has_changed=step.role != "read")
            return None
        reason = harmless(step, found, wanted)
        if reason is not None:
            self._counts.passed_over[reason] += 1
            return None
        return Difference(place, step, report, found, wanted)

    def _refuse(self, step: Step, found: Answer) -> None:
        """Counts a statement that Millstream does not support, which is left out of the case."""
        if step.role != "view":
            wanted = self._theirs.answer(step.session, step.for_judge, step.data).state
            if wanted == _REFUSED:
                return
            self._give_up(step, has_changed=step.role != "read" and not wanted)
        self._counts.refused[f"{step.role}: {found.message}"] += 1

    def _give_up(self, step: Step, has_changed: bool) -> None:
        """Goes on without a statement that had another effect in one of the databases: without the rest of its block,
        or without the rest of the case if rows may have been changed outside of a block."""
        if self._ours.sessions[step.session].is_in_block:
            self._leave(step.session)
        elif has_changed:
            self._is_over = True

    def _count(self, step: Step) -> None:
        """Counts what a case has reached: of a view when its rows have been compared."""
        self._counts.constructs.update(step.constructs)
        if step.role == "read":
            self._counts.reads += 1
            view = self._views.pop(step.name, None)
            if view is not None:
                self._counts.constructs.update(view.constructs)
            where = self._ours.server_of(step.name)
            if where:
                self._counts.constructs[f"read of a view elsewhere, {'there' if step.server else 'at home'}"] += 1

    def _leave(self, session: int) -> None:
        """Rolls a session's block back on both sides."""
        self._ours.sessions[session].answer("ROLLBACK")
        self._theirs.answer(session, "ROLLBACK")
        self._gone.add(session)

    def _restart(self, server: str) -> None:
        """Restarts a server between transactions."""
        for session in range(SESSIONS):
            if self._ours.sessions[session].is_in_block:
                self._leave(session)
        if self._ours.restart(server):
            self._counts.constructs[f"restart{' of the other server' if server else ''}"] += 1


def _broken(place: int, step: Step, found: Answer) -> Difference | None:
    """A statement of Millstream alone may fail, but not for a fault of its own."""
    return Difference(place, step, str(found), found, Answer("")) if found.state[:2] == "XX" else None
