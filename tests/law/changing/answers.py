"""What a statement answers, and whether two answers are equal.

Values are compared as the texts that clients get, so numerics with their decimals; floats to 1e-9 of the sum of
absolute values, which is at most some times ``SCALE``. Rows are a bag unless the query orders them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

#: The oids of float8.
_FLOATS: Final = (701,)
#: Oids from here on are those of types that the case has made; each database gives its own.
_OWN: Final = 16384
#: Floats of this size and more have this relative precision; smaller ones may come from a sum of large ones.
SCALE: Final = 1e15
RELATIVE: Final = 1e-9

Row = tuple[str | None, ...]


class Answer(Struct, frozen=True):
    """An SQLSTATE, "" for success; the tag; and rows with the oids of their columns."""

    state: str
    tag: str = ""
    kinds: tuple[int, ...] = ()
    rows: tuple[Row, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        if self.state:
            return f"{self.state}: {self.message}"
        return f"{self.tag}, {len(self.rows)} rows of {self.kinds}" if self.kinds else self.tag


def difference(found: Answer, wanted: Answer, ordered: bool = False) -> str | None:
    """None if both answers are equal, else what differs."""
    if (found.state, _known(found.kinds)) != (wanted.state, _known(wanted.kinds)) or (
        not found.kinds and found.tag != wanted.tag
    ):
        return f"found    {found}\nexpected {wanted}"
    rows, others = list(found.rows), list(wanted.rows)
    if rows == others or (not ordered and Counter(rows) == Counter(others)):
        return None
    floats = [place for place, kind in enumerate(found.kinds) if kind in _FLOATS]
    only, missing = (rows, others) if ordered else (_without(rows, others, floats), _without(others, rows, floats))
    if len(only) == len(missing) and all(_near(*pair, floats) for pair in zip(only, missing, strict=True)):
        return None
    return "\n".join(
        (
            f"found {len(rows)} rows, expected {len(others)}{' in order' if ordered else ''}",
            *(f"  only found:    {row}" for row in only[:4]),
            *(f"  only expected: {row}" for row in missing[:4]),
        )
    )


def _known(kinds: tuple[int, ...]) -> list[int]:
    return [min(kind, _OWN) for kind in kinds]


def _without(rows: Sequence[Row], others: Sequence[Row], floats: Sequence[int]) -> list[Row]:
    """The difference of bags; rows that differ in floats only come in one order."""
    return sorted((Counter(rows) - Counter(others)).elements(), key=lambda row: _sorted_by(row, floats))


def _sorted_by(row: Row, floats: Sequence[int]) -> tuple[object, ...]:
    exact = [repr(value) for place, value in enumerate(row) if place not in floats]
    return exact, [(row[place] is None, float(row[place] or 0)) for place in floats]


def _near(row: Row, other: Row, floats: Sequence[int]) -> bool:
    return all(
        value == judged or (place in floats and value is not None and judged is not None and _close(value, judged))
        for place, (value, judged) in enumerate(zip(row, other, strict=True))
    )


def _close(text: str, judged: str) -> bool:
    value, wanted = float(text), float(judged)
    size = 2 * SCALE if max(abs(value), abs(wanted)) > SCALE / 100 else 0.0
    return math.isclose(value, wanted, rel_tol=RELATIVE, abs_tol=RELATIVE * max(size, 1000.0))
