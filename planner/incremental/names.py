"""Names of traces' columns: what a leaf calls them, and what people read.

A run's columns are called c<id> after the state's (or static's) columns, as all results of engines are. These columns
are numbered by their places in the trace (``programs.canonical``); their own names are for EXPLAIN alone, readable and
unique within their state.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from planner.algebra.nodes import Column

#: Where a row stands in its stream: columns of a delta.
LSN: Final = "__lsn"
ORDINAL: Final = "__ordinal"


def stored_name(column: Column) -> str:
    """What a column of a state or static is called in its trace."""
    return f"c{column.id}"


class Names:
    """Hands out names; one that is taken gets a number."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()

    def unique(self, wanted: str) -> str:
        """The wanted name, or the first of wanted_2, wanted_3, ... that is free."""
        name = wanted
        while self._uses[name]:
            self._uses[wanted] += 1
            name = f"{wanted}_{self._uses[wanted]}"
        self._uses[name] += 1
        return name
