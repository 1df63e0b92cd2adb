"""Runs generated cases on both servers, and finds the part of an expression that causes a difference.

Owns: ``Comparison``, two servers with the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tests.compatibility.cases import Case
from tests.compatibility.compare import Outcome, Peer, Verdict, alike, is_cut, judge
from tests.compatibility.expressions import Expression
from tests.compatibility.tables import JOINED, statements
from tests.compatibility.together import one_by_one, together

#: The name of a difference in errors if all parts are equal by themselves: one server did not evaluate a part.
UNNEEDED: Final = "errors in nested calls"
#: The name of an error that says that a result needs more digits than Millstream's numerics have.
TOO_WIDE: Final = "numerics of more than 38 digits"
_TOO_WIDE: Final = re.compile("numeric|38 digits|HUGEINT")
#: The name of a difference in decimals if PostgreSQL shows more than Millstream's numerics keep.
TOO_FINE: Final = "numerics of more than 18 decimals"
SETS: Final = "UNION, INTERSECT, EXCEPT"
#: The name of a difference if a set operation's rows are equal and PostgreSQL's plan chooses the one that is shown.
CHOSEN: Final = "decimals of equal numerics in set operations"
_SCHEMA: Final = "compatibility"


class Result(Struct, frozen=True):
    """The outcome of a case; ``name`` is the part that differs."""

    case: Case
    verdict: Verdict
    name: str
    found: Outcome
    wanted: Outcome


class Comparison:
    """Millstream and PostgreSQL with the same statements; ``engine`` is Millstream's engine for queries."""

    def __init__(self, ours: str, theirs: str, engine: str = "embedded") -> None:
        path = (f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}", f"SET search_path = {_SCHEMA}")
        self._ours, self._theirs = Peer(ours, (f"SET query_engine = '{engine}'",)), Peer(theirs, path)
        self._outcomes = together if engine == "spark" else one_by_one
        for statement in statements():
            for peer in (self._ours, self._theirs):
                outcome = peer.run(statement)
                assert outcome.state == "00000", f"{outcome.message}: {statement}"

    def close(self) -> None:
        """Drops what was created, so that the servers can be used again."""
        self._theirs.run(f"DROP SCHEMA {_SCHEMA} CASCADE")
        self._ours.run(f"DROP TABLE w, {', '.join(JOINED)}")
        self._ours.close()
        self._theirs.close()

    def results(self, wanted: Iterable[Case]) -> Iterator[Result]:
        """Runs cases."""
        asked = list(wanted)
        answers = [self._theirs.run(case.text) for case in asked]
        for case, found, judged in zip(asked, self._outcomes(self._ours, asked, answers), answers, strict=True):
            verdict = judge(found, judged, case.ordered)
            yield Result(case, verdict, self._name(case, verdict, found, judged), found, judged)

    def _name(self, case: Case, verdict: Verdict, found: Outcome, judged: Outcome) -> str:
        if verdict is Verdict.DIFFERENT and found.state == "22003" and _TOO_WIDE.search(found.message):
            return TOO_WIDE
        if verdict is Verdict.DIFFERENT and alike(found, judged):
            if is_cut(found, judged, case.ordered):
                return TOO_FINE
            if case.construct == SETS:
                return CHOSEN
        if verdict is Verdict.EQUAL or case.expression is None:
            return case.name
        blamed = self._blamed(case.expression, case.row, verdict)
        apart = found.state != judged.state and any(part.parts for part in blamed.parts)
        return UNNEEDED if apart and verdict is Verdict.DIFFERENT else blamed.name

    def _both(self, text: str, ordered: bool) -> tuple[Outcome, Outcome, Verdict]:
        found, wanted = self._ours.run(text), self._theirs.run(text)
        return found, wanted, judge(found, wanted, ordered)

    def _blamed(self, expression: Expression, row: int, verdict: Verdict) -> Expression:
        """The innermost part that shows the same difference by itself."""
        for part in expression.parts:
            if part.parts and self._both(f"SELECT {part.text} FROM w WHERE id = {row}", False)[2] is verdict:
                return self._blamed(part, row, verdict)
        return expression
