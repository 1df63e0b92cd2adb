"""Generates the cases: a round has every signature and every construct at least once; equal seeds give equal cases.

Owns: ``Case``, and turning expressions and queries into cases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.compatibility.expressions import Expression, Expressions, aggregate_signatures, signatures
from tests.compatibility.queries import Queries

#: The numbers, per round, of queries of each construct, nested expressions, and operators on any types.
QUERIES_EACH: Final = 8
NESTED: Final = 300
ANY_TYPES: Final = 150


class Case(Struct, frozen=True):
    """A statement to compare, listed under ``name``. For an expression, ``expression`` helps to find the part that
    differs."""

    construct: str
    name: str
    text: str
    ordered: bool = False
    expression: Expression | None = None
    row: int = 0
    #: The select item and its FROM, for a case that can share a SELECT with others.
    target: str = ""
    source: str = ""


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
    case = _selected(construct or expression.construct, expression, f"FROM w WHERE id = {row}")
    return replace(case, expression=expression, row=row)


def _aggregate(expression: Expression) -> Case:
    return _selected("aggregates by type", expression, "FROM w WHERE id IN (0, 1, 2, 11)")


def _selected(construct: str, expression: Expression, source: str) -> Case:
    text = f"SELECT {expression.text} {source}"
    return Case(construct, expression.name, text, target=expression.text, source=source)


def sample(seed: int, share: float) -> list[Case]:
    """Some cases of a round, in their order."""
    source = random.Random(seed)
    return [case for case in cases(seed, 1) if source.random() < share]
