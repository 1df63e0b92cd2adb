"""Programs: how one continuous view is maintained, as data.

A program is what the planner hands to the engines (architecture, section 3): traces that it owns (states), statements
that add runs to them, and the relation that makes the view's rows from the states. Plain algebra throughout, so both
engines run it; it serialises to JSON and back (``planner.algebra.serialize``), which is what manifests store.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from planner.algebra.relations import Relation
from planner.algebra.scalars import AggregateCall, Column

#: How two rows of equal key become one. 'concatenate' keeps both (value states in arrival order).
StateKind = Literal["aggregate", "distinct", "concatenate"]


class State(Struct, frozen=True):
    """A trace that the program owns.

    ``aggregate``: one row per ``key``; the other columns merge by ``merge[i]``, each an AggregateCall over a reference
    to that very column (sum, min, max, bool_and, bool_or). ``distinct``: ``key`` is all columns, duplicates vanish.
    ``concatenate``: all rows stay. Without GROUP BY there is one group.
    """

    name: str
    kind: StateKind
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    merge: tuple[tuple[Column, AggregateCall], ...] = ()


class Static(Struct, frozen=True):
    """A static pipeline's result, evaluated once at the view's creation and kept as one run (thesis 4.2.2)."""

    name: str
    relation: Relation
    columns: tuple[Column, ...]


class Statement(Struct, frozen=True):
    """``target`` trace += ``relation``, whose leaves are Delta(stream), Snapshot(static), and Snapshot(state) of the
    same path: that state as it was before the delta."""

    target: str
    relation: Relation


class Path(Struct, frozen=True):
    """Statements over one stream's delta that move together: one durable frontier, one commit."""

    stream: int  # oid
    statements: tuple[Statement, ...]


class Expiry(Struct, frozen=True):
    """Rows of ``state`` that no result needs any more: whose ``column`` lies ``age`` microseconds or more before the
    ``latest`` of state ``watermark``, or is NULL. It only grows, so they need not be kept.

    With a ``gap`` it is the last row of the row's session that lies so long before; ``others`` are the columns beside
    the time within which rows are of one session."""

    state: str
    column: Column
    watermark: str
    latest: Column
    age: int
    gap: int | None = None
    others: tuple[Column, ...] = ()


class Borrowed(Struct, frozen=True):
    """A trace of a view that has left its home: what the view reads there of ``table`` (its oid; it is ``called`` so)
    whenever it is read. The columns are called as the table's."""

    name: str
    table: int
    called: str
    columns: tuple[Column, ...]


class Program(Struct, frozen=True):
    """One continuous view: ``final`` makes its rows, ``columns`` in order, from Snapshots of states and current tables.

    ``point_key``: output columns that are exactly the single group key of the one state under a final of only
    projections and filters, so that a point read may go to a key index; empty where there is none. ``expiries``: what
    may be taken out of states. ``borrowed``: what stands for current tables where the view is not at its home
    (``planner/incremental/programs/lending``).
    """

    statics: tuple[Static, ...]
    states: tuple[State, ...]
    paths: tuple[Path, ...]
    final: Relation
    columns: tuple[Column, ...]
    point_key: tuple[Column, ...] = ()
    expiries: tuple[Expiry, ...] = ()
    borrowed: tuple[Borrowed, ...] = ()
