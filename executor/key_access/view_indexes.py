"""The key indexes of continuous views: built at the first point read, and kept for later ones.

Owns: which index belongs to which version of its view, and how an index is brought to the current LSN.
``executor.key_access.point_sources`` turns a query into a read of an index.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.replicas.replica import Replicas
from executor.traces.budget import Held
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key, KeyedRows
from executor.views.index import ViewIndex
from executor.views.runtime import ViewRuntime


class _Kept(Struct):
    """A view's index, the version of the view that it belongs to, and an LSN at which that version was still the
    newest."""

    version: int
    index: KeyedRows
    key: Columns
    held: Held
    checked: int = -1


class ViewIndexes:
    """The indexes of all views of a database."""

    def __init__(self, core: Core, replicas: Replicas) -> None:
        self._core, self._replicas = core, replicas
        self._indexes: dict[int, _Kept] = {}
        self._made: dict[int, ViewIndex] = {}

    def forget(self, oid: int) -> None:
        """A view was dropped, or its index is to be made again."""
        self._indexes.pop(oid, None)
        made = self._made.pop(oid, None)
        if made is not None:
            made.held.close()

    def key_of(self, oid: int) -> tuple[str, ...]:
        """The names of the view's columns for which a point read gives values; () if the view has no point reads."""
        runtime = self._core.view(oid)
        program = runtime.program
        names = {column: item.name for column, item in zip(program.columns, runtime.view.stored, strict=True)}
        return tuple(names[column] for column in program.point_key)

    def peek(self, oid: int, key: Key) -> Row | None:
        """One row of a view's index if nothing arrived since its last refresh. Never blocks."""
        known = self._indexes.get(oid)
        if known is None:
            return None
        core = self._core
        if self._replicas.are_behind((oid,)) or core.versions.are_suspended((oid,)):
            return None
        visible = core.sequencer.visible  # before the version: changes published meanwhile are found the next time
        if visible != known.checked:
            if known.version != core.version_of((oid,)):
                return None
            known.checked = visible
        known.held.read()
        return known.index.get(known.key, key)

    def read(self, oid: int, key: Key) -> Row | None:
        """One row, at the current LSN, of a view that has a point key."""
        runtime = self._core.view(oid)
        self._replicas.refresh((oid,))
        runtime.check_inputs()
        with runtime.lock:
            with self._core.sequencer.lock:  # a record being published changes the version before it is visible
                version, lsn = self._core.version_of((oid,)), self._core.sequencer.visible
            runtime.advance(lsn)
            columns = self.key_of(oid)
            own = self._made.get(oid)
            if own is None or not own.is_of(runtime):
                self.forget(oid)
                held = self._core.trace_budget.register(lambda size: self.forget(oid))
                own = self._made[oid] = ViewIndex(runtime, columns, held)
            try:
                index = own.refresh(lambda states: self.final(runtime, states), lsn)
            except SqlError:  # a row that the index cannot hold
                self.forget(oid)
                raise
            own.held.read()
            own.held.set(index.bytes)
            if self._made.get(oid) is own:
                self._indexes[oid] = _Kept(version, index, columns, own.held)
            row = index.get(columns, key)
        self._core.trace_budget.keep()
        return row

    def final(self, runtime: ViewRuntime, states: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a view with a point key, over its state or over some groups of the state."""
        final = self._core.plans.get(runtime.program.final)
        table = None if final.small is None else final.small.run(states)
        if table is None:
            table = self._core.engine.query(final.relation, states, (), runtime.time_zone)
        return table.rename_columns([column.name for column in runtime.view.stored])
