"""Constraints, checked per statement before its changes are applied, with PostgreSQL's errors.

Owns: NOT NULL (23502), unique keys (23505), foreign keys in both directions and their actions (23503). CHECK is
evaluated by ``effects.py``, which has the bound expressions. The changes of a statement are one ``Change`` per table;
what a key's or a reference's partner looks like after the statement is the stored table without the rows that go and
with those that come. What a key that waits for the commit misses, or has twice, is only noted (``deferral.py``).

See https://www.postgresql.org/docs/15/ddl-constraints.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import SqlError, unsupported
from catalog.objects import ForeignKey, Index, Table, UniqueKey, null_value
from catalog.scales import scale_name
from executor.embedded.connection import Connection
from executor.embedded.tables.changes import (
    Change,
    bound,
    listed,
    names_of,
    nothing,
    quoted,
    removal,
    replacement,
    stored,
)
from executor.embedded.tables.deferral import Deferred, Timing, missing, repeated, require_whole, still_referenced
from executor.embedded.tables.showing import failing_row
from executor.embedded.tables.unique_keys import Key, enforced, key_of
from executor.tables.shapes import schema_of
from planner.algebra import ROW_ID

if TYPE_CHECKING:
    from executor.embedded.tables.following import Following

Statement = dict[int, Change]


def check_not_null(table: Table, rows: pa.Table) -> None:
    """Raises 23502 for the first column that must have a value and has none."""
    primary = {name for key in table.keys if key.primary for name in key.columns}
    for column, values in zip(table.stored, rows.columns, strict=True):
        if (column.not_null or column.name in primary) and values.null_count:
            place = pc.index(values.is_null(), True).as_py()
            raise null_value(table, column.name, failing_row(table, rows, place), place)


def refuse_referenced(definitions: Mapping[int, Table], table: Table, together: Set[int]) -> None:
    """TRUNCATE of tables that others refer to. Raises 0A000, as PostgreSQL says it."""
    for other in definitions.values():
        if other.oid not in together and any(key.target == table.oid for key in other.foreign_keys):
            detail = f'Table "{other.name}" references "{table.name}".'
            hint = f'Truncate table "{other.name}" at the same time, or use TRUNCATE ... CASCADE.'
            raise SqlError("0A000", "cannot truncate a table referenced in a foreign key constraint", detail, hint)


class Checker:
    """Checks one statement's changes, after it has added what foreign keys' actions change."""

    def __init__(
        self,
        connection: Connection,
        definitions: Mapping[int, Table],
        changes: Statement,
        timing: Timing,
        following: Following | None = None,
    ) -> None:
        self._connection = connection
        self._definitions = definitions
        self._timing = timing
        self._following = following
        #: Tables of which rows have followed others.
        self._followed: set[int] = set()
        self.changes = changes
        #: What waits for the commit.
        self.deferred: list[Deferred] = []

    def check(self) -> None:
        """Adds the actions' changes, then checks everything. Raises 23502, 23503, 23505."""
        self._act()
        for oid in self._followed:
            self._rules.check(self._definitions[oid], self.changes[oid].inserted)
        for oid, change in self.changes.items():
            table = self._definitions[oid]
            check_not_null(table, change.inserted)
            for key in enforced(table):
                self._check_unique(table, key, change)
        for oid, change in self.changes.items():
            table = self._definitions[oid]
            for reference in table.foreign_keys:
                self._check_reference(table, reference, change)
            self._check_referencing(table, change)

    @property
    def _rules(self) -> Following:
        assert self._following is not None, "an INSERT alone moves no key"
        return self._following

    def _bind(self, table: Table) -> None:
        bound(self._connection, table, self.changes.get(table.oid) or nothing(table))

    # Unique keys ------------------------------------------------------------------------------------------------

    def _check_unique(self, table: Table, constraint: UniqueKey | Index, change: Change) -> None:
        key = key_of(table, constraint)
        if not change.inserted.num_rows or change.keeps(key.uses):
            return
        self._bind(table)
        if isinstance(constraint, UniqueKey) and self._timing.waits(table, constraint):
            self._defer_key(table, constraint, change)
            return
        found = self._rows_of(self._repeated(table, key)) if change.inserted.num_rows > 1 else []
        if found := found or self._rows_of(self._taken(table, key, change)):
            raise repeated(table, key, found[0])

    def _rows_of(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.rows(f"{query} LIMIT 1")

    def _repeated(self, table: Table, key: Key) -> str:
        """The keys that come twice."""
        known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key.columns)
        rows = key.among(f'"__new{table.oid}"')
        return f"SELECT {listed(key.columns)} FROM {rows} WHERE {known} GROUP BY ALL HAVING count(*) > 1"

    def _taken(self, table: Table, key: Key, change: Change) -> str:
        """The keys of rows that stay and of rows that come."""
        same = " AND ".join(f"t.{quoted(name)} = n.{quoted(name)}" for name in key.columns)
        new = key.among(f'"__new{table.oid}"')
        rest = f"{key.stored(table)} t SEMI JOIN {new} n ON {same}"
        if len(change.row_ids):
            rest += f' ANTI JOIN "__gone{table.oid}" g ON t.rowid = g.{ROW_ID}'
        return f"SELECT {listed(key.columns, 't')} FROM {rest}"

    def _defer_key(self, table: Table, key: UniqueKey, change: Change) -> None:
        schema, asked = change.inserted.select(list(key.columns)).schema, key_of(table, key)
        for query in (self._repeated(table, asked), self._taken(table, asked, change)):
            self._defer(table, table, key, self._connection.table(query, schema))

    def _remaining(self, table: Table, change: Change | None) -> str:
        """A table without the rows that go, as a FROM item."""
        if change is None or not len(change.row_ids):
            return stored(table)
        return f'(SELECT *, rowid FROM {stored(table)} WHERE rowid NOT IN (SELECT {ROW_ID} FROM "__gone{table.oid}"))'

    # Foreign keys -----------------------------------------------------------------------------------------------

    def _check_reference(self, table: Table, reference: ForeignKey, change: Change) -> None:
        """Every row that comes has its partner."""
        kept = reference.target not in self.changes and change.keeps(reference.columns)
        if not change.inserted.num_rows or kept:
            return
        target = self._definitions[reference.target]
        if reference.full:
            require_whole(table, reference, change.inserted)
        self._bind(table)
        self._bind(target)
        pairs = list(zip(reference.columns, reference.target_columns, strict=True))
        same = " AND ".join(f"n.{quoted(own)} = t.{quoted(other)}" for own, other in pairs)
        known = " AND ".join(f"n.{quoted(own)} IS NOT NULL" for own in reference.columns)
        others = listed(reference.target_columns)
        after = f"SELECT {others} FROM {self._remaining(target, self.changes.get(target.oid))}"
        if target.oid in self.changes:
            after += f' UNION ALL SELECT {others} FROM "__new{target.oid}"'
        keys = (
            f'SELECT {listed(reference.columns, "n")} FROM "__new{table.oid}" n '
            f"ANTI JOIN ({after}) t ON {same} WHERE {known}"
        )
        if self._timing.waits(table, reference):
            schema = change.inserted.select(list(reference.columns)).schema
            self._defer(table, table, reference, self._connection.table(keys, schema))
        elif found := self._connection.rows(f"{keys} LIMIT 1"):
            raise missing(table, reference, target, found[0])

    def _defer(self, changed: Table, child: Table, constraint: ForeignKey | UniqueKey, keys: pa.Table | None) -> None:
        absent = None
        if keys is not None and keys.num_rows:
            absent = keys.rename_columns([f"k{place}" for place in range(keys.num_columns)])
        self.deferred.append(Deferred(changed.oid, child.oid, constraint.name, absent))

    def _referencing(self, table: Table) -> list[tuple[Table, ForeignKey]]:
        return [
            (other, reference)
            for other in self._definitions.values()
            for reference in other.foreign_keys
            if reference.target == table.oid
        ]

    def _vanished(self, table: Table, columns: tuple[str, ...], change: Change) -> pa.Table | None:
        """Keys that no row has any more after the statement; None when there are none."""
        if not change.deleted.num_rows:
            return None
        old = change.deleted.select(list(columns))
        if not change.inserted.num_rows:
            return old
        if change.keeps(columns):
            return None
        names = {f"__before{table.oid}": old, f"__after{table.oid}": change.inserted.select(list(columns))}
        self._connection.bind(names)
        before, after = (f'SELECT * FROM "{name}"' for name in names)
        keys = self._connection.table(f"{before} EXCEPT {after}", old.schema)
        self._connection.unbind(names)
        return keys if keys.num_rows else None

    def _given_up(self, table: Table, columns: tuple[str, ...], change: Change) -> pa.Table | None:
        """The keys of rows that go, or that have another one now; None when there are none."""
        if not change.updated:
            return change.deleted.select(list(columns)) if change.deleted.num_rows else None
        keys = None if change.keeps(columns) else self._changed_keys(table, columns, change)
        return keys if keys is not None and keys.num_rows else None

    def _changed_keys(self, table: Table, columns: tuple[str, ...], change: Change, also: str = "") -> pa.Table:
        """The old keys of the pairs that have another one now; ``also`` may name the new ones, "__after<oid>"."""
        places = pa.array(range(change.updated), pa.int64())
        rows = (change.deleted.select(list(columns)), change.inserted.select(list(columns)))
        before, after = f"__before{table.oid}", f"__after{table.oid}"
        names = {name: _numbered(keys, places) for name, keys in zip((before, after), rows, strict=True)}
        self._connection.bind(names)
        changed = " OR ".join(f"b.{quoted(column)} IS DISTINCT FROM a.{quoted(column)}" for column in columns)
        query = (
            f'SELECT {listed(columns, "b")} FROM "{before}" b JOIN "{after}" a USING ({ROW_ID}) WHERE {changed}{also}'
        )
        keys = self._connection.table(query, rows[0].schema)
        self._connection.unbind(names)
        return keys

    def _children(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> pa.Table | None:
        """Rows of ``child`` that stay and refer to keys that vanish, with their row ids first."""
        keys = self._vanished(table, reference.target_columns, change)
        return None if keys is None else self._staying(child, reference, keys)

    def _staying(self, child: Table, reference: ForeignKey, keys: pa.Table) -> pa.Table | None:
        """Rows of ``child`` that stay and refer to some of these keys, with their row ids first."""
        self._bind(child)
        name = f"__keys{child.oid}"
        self._connection.bind({name: keys.rename_columns([f"k{i}" for i in range(keys.num_columns)])})
        same = " AND ".join(f't.{quoted(column)} = k."k{i}"' for i, column in enumerate(reference.columns))
        rest = self._remaining(child, self.changes.get(child.oid))
        fields = [pa.field(ROW_ID, pa.int64()), *schema_of(child)]
        rows = self._connection.table(
            f'SELECT t.rowid AS {ROW_ID}, {listed(names_of(child), "t")} FROM {rest} t SEMI JOIN "{name}" k ON {same}',
            pa.schema(fields),
        )
        self._connection.unbind({name: keys})
        return rows if rows.num_rows else None

    def _check_referencing(self, table: Table, change: Change) -> None:
        for child, reference in self._referencing(table):
            waits = self._timing.waits(child, reference)
            self._check_restricted(table, child, reference, change)
            rows = self._children(table, child, reference, change)
            if waits and self._vanished(table, reference.target_columns, change) is not None:
                self._defer(table, child, reference, None if rows is None else rows.select(list(reference.columns)))
            elif rows is not None:
                raise self._still_referenced(table, child, reference, rows)

    def _check_restricted(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> None:
        """RESTRICT never waits, and takes no other row with the key for the one that had it."""
        for action, part in ((reference.on_update, change.replaced), (reference.on_delete, change.removed)):
            keys = self._given_up(table, reference.target_columns, part) if action == "r" else None
            rows = None if keys is None else self._staying(child, reference, keys)
            if rows is not None:
                raise self._still_referenced(table, child, reference, rows)

    def _still_referenced(self, table: Table, child: Table, reference: ForeignKey, rows: pa.Table) -> SqlError:
        values = tuple(rows.column(name)[0].as_py() for name in reference.columns)
        return still_referenced(child, reference, table, values)

    # Actions ----------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        """CASCADE and SET NULL, until nothing more changes."""
        pending = list(self.changes)
        while pending:
            table = self._definitions[pending.pop(0)]
            for child, reference in self._referencing(table):
                whole = self.changes[table.oid]
                for action, change in (
                    (reference.on_update, whole.replaced),
                    (reference.on_delete, whole.removed),
                ):
                    if action not in "ar" and self._follow(table, child, reference, action, change):
                        self._followed.add(child.oid)
                        pending.append(child.oid)

    def _follow(self, table: Table, child: Table, reference: ForeignKey, action: str, change: Change) -> bool:
        """Does to rows that refer to keys that vanish what the action says: to those that stay, and to those that come,
        which another action or the statement itself has changed. Whether there are any."""
        keys = self._vanished(table, reference.target_columns, change)
        if change.updated:
            self._refuse_shifted(table, child, reference, change)
        if keys is None:
            return False
        rows = self._staying(child, reference, keys)
        if rows is not None:
            self._add(child, self._action(child, reference, action, rows, change))
        places = self._coming(child, reference, keys)
        if places is not None:
            self._follow_again(child, reference, action, places, change)
        if action == "d" and (left := self._coming(child, reference, keys)) is not None:
            raise self._still_referenced(table, child, reference, self.changes[child.oid].inserted.take(left))
        return rows is not None or places is not None

    def _follow_again(
        self, child: Table, reference: ForeignKey, action: str, places: pa.ChunkedArray, change: Change
    ) -> None:
        """The action for rows that come."""
        known = self.changes[child.oid]
        if action == "c" and not change.updated:
            self.changes[child.oid] = known.without(places)
            return
        followed = self._action(child, reference, action, _numbered(known.inserted.take(places), places), change)
        self.changes[child.oid] = known.with_new(places, followed.inserted)

    def _coming(self, child: Table, reference: ForeignKey, keys: pa.Table) -> pa.ChunkedArray | None:
        """The places of rows of ``child`` that come and refer to some of these keys; None where there are none."""
        known = self.changes.get(child.oid)
        if known is None or not known.inserted.num_rows:
            return None
        came, sought = f"__came{child.oid}", f"__keys{child.oid}"
        places = pa.array(range(known.inserted.num_rows), pa.int64())
        names = {
            came: _numbered(known.inserted.select(list(reference.columns)), places),
            sought: keys.rename_columns([f"k{i}" for i in range(keys.num_columns)]),
        }
        self._connection.bind(names)
        same = " AND ".join(f't.{quoted(column)} = k."k{i}"' for i, column in enumerate(reference.columns))
        schema = pa.schema([pa.field(ROW_ID, pa.int64())])
        query = f'SELECT t.{ROW_ID} FROM "{came}" t SEMI JOIN "{sought}" k ON {same} ORDER BY t.{ROW_ID}'
        found = self._connection.table(query, schema).column(0)
        self._connection.unbind(names)
        return found if len(found) else None

    def _refuse_shifted(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> None:
        """Raises 0A000 where a key goes from one row to another and something refers to it: PostgreSQL lets it follow
        the row, one row after the other."""
        if change.keeps(reference.target_columns):
            return
        columns = reference.target_columns
        keys = self._changed_keys(
            table, columns, change, f' INTERSECT SELECT {listed(columns)} FROM "__after{table.oid}"'
        )
        if keys.num_rows and self._referring(child, reference, keys):
            hint = "Change them in several statements, the last ones first."
            raise unsupported(f'moving keys of "{table.name}" from row to row while others refer to them', hint)

    def _referring(self, child: Table, reference: ForeignKey, keys: pa.Table) -> bool:
        """Whether rows that stay or come refer to some of these keys."""
        return self._staying(child, reference, keys) is not None or self._coming(child, reference, keys) is not None

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
        """A reference's columns and the target's, then the scales of these; None where the target keeps none."""
        keeping, kept = (
            {column.name for column in table.columns if column.keeps_scale}
            for table in (child, self._definitions[reference.target])
        )
        pairs = list(zip(reference.columns, reference.target_columns, strict=True))
        scales = [
            (scale_name(own), scale_name(other) if other in kept else None) for own, other in pairs if own in keeping
        ]
        return [*pairs, *scales]

    def _moved(self, rows: pa.Table, child: Table, reference: ForeignKey, change: Change) -> dict[str, Any]:
        """ON UPDATE CASCADE: the new keys of the old ones, by the child's columns."""
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
        known = self.changes.get(table.oid)
        self.changes[table.oid] = change if known is None else known.also(change)


def _numbered(rows: pa.Table, places: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The rows, each with a number before it."""
    return rows.add_column(0, pa.field(ROW_ID, pa.int64()), places)


def _with(rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The rows with other values in some columns. Raises 22003 where a column does not have them."""
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        try:
            rows = rows.set_column(place, field, values.cast(field.type))
        except pa.ArrowInvalid as error:
            raise SqlError("22003", f'value out of range for column "{name}"') from error
    return rows
