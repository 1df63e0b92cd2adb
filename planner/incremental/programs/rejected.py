"""The state that every continuous view has beside those of its program: the rows of streams that it has left out.

It moves with the view's paths like any other state, in one commit with what the other rows gave, so that a row is in it
exactly once, whatever was computed again after a crash. Of each stream's rows the last ``KEPT`` stay; ``number`` goes
on counting.
"""

from __future__ import annotations

from typing import Final

from catalog.values.types import INT8, TEXT, TIMESTAMPTZ
from planner.algebra.nodes import Column
from planner.incremental.programs.program import State

#: How many rows of each stream a view remembers.
KEPT: Final = 256

_NAMES: Final = (
    ("stream", TEXT),
    ("number", INT8),  # of the rows of the stream that the view has left out, from 1
    ("lsn", INT8),
    ("ordinal", INT8),
    ("at", TIMESTAMPTZ),
    ("sqlstate", TEXT),
    ("message", TEXT),
    ("row", TEXT),
)
REJECTED: Final = State(
    "rejected", "concatenate", tuple(Column(place, *item) for place, item in enumerate(_NAMES, 1)), ()
)
