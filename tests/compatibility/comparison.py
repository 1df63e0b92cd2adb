"""Generated cases run on both servers: what each showed, and which part of an expression is to blame.

Owns: ``cases`` (a round is every signature and every construct once or more; equal seeds give equal cases) and
``Comparison``, two servers with the same tables.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.compatibility.compare import Outcome, Peer, Verdict, judge
from tests.compatibility.expressions import Expression, Expressions, aggregate_signatures, signatures
from tests.compatibility.queries import Queries
from tests.compatibility.tables import statements

#: Of each round: queries of each construct, nested expressions, and operators on any types.
QUERIES_EACH: Final = 8
NESTED: Final = 300
ANY_TYPES: Final = 150
#: What a difference in errors is called where all parts are equal by themselves: one server had no need of a part.
UNNEEDED: Final = "errors in nested calls"
_SCHEMA: Final = "compatibility"


@dataclass(frozen=True, slots=True)
class Case:
    """A statement to compare, listed under ``name``; ``expression`` is what it computes, for blame."""

    construct: str
    name: str
    text: str
    ordered: bool = False
    expression: Expression | None = None
    row: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a case showed; ``name`` is the part that differs."""

    case: Case
    verdict: Verdict
    name: str
    found: Outcome
    wanted: Outcome


def cases(seed: int, rounds: int) -> Iterator[Case]:
    """All cases of a seed."""
    source = random.Random(seed)
    expressions, queries = Expressions(source), Queries(source)
    for _ in range(rounds):
        for signature in signatures():
            yield _expression(expressions.of(signature), expressions.row())
        for signature in aggregate_signatures():
            yield _aggregate(expressions.of(signature))
        for _ in range(NESTED):
            found = expressions.nested(source.choice(signatures()), 2)
            yield _expression(found, expressions.row(), "nested expressions")
        for _ in range(ANY_TYPES):
            yield _expression(expressions.anything(), expressions.row())
        for construct in queries.constructs:
            for _ in range(QUERIES_EACH):
                query = queries.query(construct)
                yield Case(construct, construct, query.text, query.ordered)


def _expression(expression: Expression, row: int, construct: str = "") -> Case:
    text = f"SELECT {expression.text} FROM w WHERE id = {row}"
    return Case(construct or expression.construct, expression.name, text, False, expression, row)


def _aggregate(expression: Expression) -> Case:
    return Case("aggregates by type", expression.name, f"SELECT {expression.text} FROM w WHERE id IN (0, 1, 2, 11)")


def sample(seed: int, share: float) -> list[Case]:
    """Some of a round's cases, in their order."""
    source = random.Random(seed)
    return [case for case in cases(seed, 1) if source.random() < share]


class Comparison:
    """Millstream and PostgreSQL, told the same."""

    def __init__(self, ours: str, theirs: str) -> None:
        path = (f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}", f"SET search_path = {_SCHEMA}")
        self._ours, self._theirs = Peer(ours), Peer(theirs, path)
        for statement in statements():
            for peer in (self._ours, self._theirs):
                outcome = peer.run(statement)
                assert outcome.state == "00000", f"{outcome.message}: {statement}"

    def close(self) -> None:
        """Removes what was made in PostgreSQL, which other tests share."""
        self._theirs.run(f"DROP SCHEMA {_SCHEMA} CASCADE")
        self._ours.close()
        self._theirs.close()

    def results(self, wanted: Iterable[Case]) -> Iterator[Result]:
        """Runs cases."""
        for case in wanted:
            found, judged, verdict = self._both(case.text, case.ordered)
            name = case.name
            if verdict is not Verdict.EQUAL and case.expression is not None:
                blamed = self._blamed(case.expression, case.row, verdict)
                apart = found.state != judged.state and any(part.parts for part in blamed.parts)
                name = UNNEEDED if apart and verdict is Verdict.DIFFERENT else blamed.name
            yield Result(case, verdict, name, found, judged)

    def _both(self, text: str, ordered: bool) -> tuple[Outcome, Outcome, Verdict]:
        found, wanted = self._ours.run(text), self._theirs.run(text)
        return found, wanted, judge(found, wanted, ordered)

    def _blamed(self, expression: Expression, row: int, verdict: Verdict) -> Expression:
        """The innermost part that shows the same by itself."""
        for part in expression.parts:
            if part.parts and self._both(f"SELECT {part.text} FROM w WHERE id = {row}", False)[2] is verdict:
                return self._blamed(part, row, verdict)
        return expression
