"""Foreign key actions on rows whose referenced keys vanish: ON DELETE and ON UPDATE with CASCADE and SET.

Owns: ``Actions``. Changed rows may cause further actions, until nothing changes any more. Afterwards, ``checks`` tests
that no row refers to a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from catalog.objects import ForeignKey, Table
from catalog.values.errors import SqlError, unsupported
from catalog.values.scales import scale_name
from executor.tables.changes import Change, listed, removal, replacement
from executor.tables.constraints.referring_rows import Referring, numbered
from planner.algebra.nodes import ROW_ID


class FollowerRules(Protocol):
    """The rules for rows that a foreign key action changes."""

    def check(self, table: Table, rows: pa.Table) -> None:
        """Checks CHECK constraints and domains of new rows. Raises 23502 and 23514."""
        ...

    def defaults(self, table: Table, names: tuple[str, ...], rows: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """The default values of some columns, for each of the rows."""
        ...


class Actions:
    """The actions of one statement."""

    def __init__(self, referring: Referring, following: FollowerRules | None) -> None:
        self._referring = referring
        self._following = following

    def act(self) -> None:
        """Adds the changes of actions until there are no more. Raises 0A000, 23503 if a default value has no partner,
        and the errors of checks on changed rows."""
        pending, followed = list(self._referring.changes), dict[int, None]()
        while pending:
            table = self._referring.definitions[pending.pop(0)]
            for child, reference in self._referring.referencing(table):
                whole = self._referring.changes[table.oid]
                for action, change in (
                    (reference.on_update, whole.replaced),
                    (reference.on_delete, whole.removed),
                ):
                    if action not in "ar" and self._follow(table, child, reference, action, change):
                        followed[child.oid] = None
                        pending.append(child.oid)
        for oid in followed:
            self._rules.check(self._referring.definitions[oid], self._referring.changes[oid].inserted)

    @property
    def _rules(self) -> FollowerRules:
        assert self._following is not None, "an INSERT alone moves no key"
        return self._following

    def _follow(self, table: Table, child: Table, reference: ForeignKey, action: str, change: Change) -> bool:
        """Applies an action to the rows that refer to vanished keys: to stored rows, and to new rows that another
        action or the statement itself has made. Returns whether there are any."""
        keys = self._referring.vanished(table, reference.target_columns, change)
        if change.updated:
            self._refuse_shifted(table, child, reference, change)
        if keys is None:
            return False
        rows = self._referring.staying(child, reference, keys)
        if rows is not None:
            self._add(child, self._action(child, reference, action, rows, change))
        places = self._referring.coming(child, reference, keys)
        if places is not None:
            self._follow_again(child, reference, action, places, change)
        if action == "d" and (left := self._referring.coming(child, reference, keys)) is not None:
            found = self._referring.changes[child.oid].inserted.take(left)
            raise self._referring.violation(table, child, reference, found)
        return rows is not None or places is not None

    def _follow_again(
        self, child: Table, reference: ForeignKey, action: str, places: pa.ChunkedArray, change: Change
    ) -> None:
        """Applies the action to new rows."""
        known = self._referring.changes[child.oid]
        if action == "c" and not change.updated:
            self._referring.changes[child.oid] = known.without(places)
            return
        followed = self._action(child, reference, action, numbered(known.inserted.take(places), places), change)
        self._referring.changes[child.oid] = known.with_new(places, followed.inserted)

    def _refuse_shifted(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> None:
        """Raises 0A000 if a key that is referenced moves from one row to another: PostgreSQL lets references follow the
        row, one row after the other."""
        if change.keeps(reference.target_columns):
            return
        columns = reference.target_columns
        keys = self._referring.changed_keys(
            table, columns, change, f' INTERSECT SELECT {listed(columns)} FROM "__after{table.oid}"'
        )
        if keys.num_rows and self._referring.refers(child, reference, keys):
            hint = "Change them in several statements, the last ones first."
            raise unsupported(f'moving keys of "{table.name}" between rows while other rows refer to them', hint)

    def _action(self, child: Table, reference: ForeignKey, action: str, rows: pa.Table, change: Change) -> Change:
        old = rows.drop_columns([ROW_ID])
        ids = rows.column(ROW_ID)
        names = reference.columns if change.updated else reference.delete_columns or reference.columns
        if action == "d":
            return replacement(ids, old, _with(old, self._rules.defaults(child, names, old)))
        if action == "n":
            sets = {*names, *map(scale_name, names)}
            nulls = {own: pa.nulls(len(ids), old.schema.field(own).type) for own, _ in self._stored(child, reference)}
            return replacement(ids, old, _with(old, {own: values for own, values in nulls.items() if own in sets}))
        if not change.updated:
            return removal(ids, old)
        return replacement(ids, old, _with(old, self._moved(old, child, reference, change)))

    def _stored(self, child: Table, reference: ForeignKey) -> list[tuple[str, str | None]]:
        """A reference's columns and the target's, then the target's scales; None for a scale that the target does not
        keep."""
        keeping, kept = (
            {column.name for column in table.columns if column.keeps_scale}
            for table in (child, self._referring.definitions[reference.target])
        )
        pairs = list(zip(reference.columns, reference.target_columns, strict=True))
        scales = [
            (scale_name(own), scale_name(other) if other in kept else None) for own, other in pairs if own in keeping
        ]
        return [*pairs, *scales]

    def _moved(self, rows: pa.Table, child: Table, reference: ForeignKey, change: Change) -> dict[str, Any]:
        """ON UPDATE CASCADE: the new keys for the old ones, under the names of the child's columns."""
        names, stored = list(reference.target_columns), self._stored(child, reference)
        old = change.deleted.select(names).rename_columns([f"o{i}" for i in range(len(names))])
        new = {own: change.inserted.column(other) for own, other in stored if other is not None}
        pairs = pa.table([*old.columns, *new.values()], names=[*old.column_names, *(f"n{own}" for own in new)])
        keys = rows.select(list(reference.columns)).rename_columns([f"r{i}" for i in range(len(names))])
        keys = keys.cast(pa.schema([pa.field(f"r{i}", kind) for i, kind in enumerate(old.schema.types)]))
        keys = keys.append_column("place", pa.array(range(keys.num_rows), pa.int64()))
        joined = keys.join(pairs, [f"r{i}" for i in range(len(names))], [f"o{i}" for i in range(len(names))])
        joined = joined.sort_by("place")
        unknown = pa.nulls(rows.num_rows, pa.int32())
        return {own: joined.column(f"n{own}") if own in new else unknown for own, _ in stored}

    def _add(self, table: Table, change: Change) -> None:
        known = self._referring.changes.get(table.oid)
        self._referring.changes[table.oid] = change if known is None else known.also(change)


def _with(rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The rows with other values in some columns. Raises 22003 if a column cannot hold its value."""
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        try:
            rows = rows.set_column(place, field, values.cast(field.type))
        except pa.ArrowInvalid as error:
            raise SqlError("22003", f'value out of range for column "{name}"') from error
    return rows
