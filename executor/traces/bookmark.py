"""How far a reader of a trace's changes is."""

from __future__ import annotations

from msgspec import Struct


class Bookmark(Struct, eq=False, weakref=True):
    """The reader has read the changes up to the LSN ``after``; the trace keeps what lies behind, within its budget.

    A bookmark is dropped when no reader references it.
    """

    after: int
