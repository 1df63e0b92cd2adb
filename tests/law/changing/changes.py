"""Random statements that change rows, some of which violate constraints.

None depends on the order in which a database visits rows: an UPDATE of many rows leaves keys alone, and the rows that
MERGE and UPDATE ... FROM meet are unique.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.law.changing import rows
from tests.law.changing.scalars import Ref, Scalars, Scope
from tests.law.changing.schemas import Column, Table
from tests.law.changing.steps import Step


class Changes:
    """Draws statements over tables."""

    def __init__(self, source: random.Random, tables: Sequence[Table]) -> None:
        self._source = source
        self._tables = tables
        self._scalars = Scalars(source)

    def draw(self, table: Table, session: int = 0) -> Step:
        """A statement that changes a table, or that inserts into a stream."""
        if table.is_stream:
            return self.insert(table, session)
        forms: dict[Callable[[Table], Step | None], int] = {
            self._insert_or_copy: 8, self._update: 5, self._update_key: 2, self._update_one: 3, self._delete: 3,
            self._merge: 2, self._upsert: 3, self._from_other: 2, self._moved: 1, self._delete_using: 1,
            self._update_from: 1, self._truncate: 1,
        }  # fmt: skip
        found = None
        while found is None:
            found = self._source.choices(list(forms), list(forms.values()))[0](table)
        return Step(found.role, found.text, session, found.rows, None, table.name, found.constructs)

    # -- INSERT ----------------------------------------------------------------------------------------------------

    def insert(self, table: Table, session: int = 0, most: int = 4) -> Step:
        """INSERT of some rows, or COPY of them."""
        found = self._insert_or_copy(table, most)
        return Step(found.role, found.text, session, found.rows, None, table.name, found.constructs)

    def _insert_or_copy(self, table: Table, most: int = 4) -> Step:
        number = self._source.choice((1, 1, self._source.randint(1, most)))
        values = [rows.row(self._source, table, table.columns) for _ in range(number)]
        names = ", ".join(column.name for column in table.columns)
        if self._source.random() < 0.15:
            lines = tuple(rows.as_line(item) for item in values)
            return Step("copy", f"COPY {table.name} ({names}) FROM STDIN", rows=lines, constructs=("COPY",))
        listed = tuple(rows.as_values(table.columns, item) for item in values)
        text = f"INSERT INTO {table.name} ({names}) VALUES {{rows}}{self._returning(table)}"
        return Step("change", text, rows=listed, constructs=("INSERT of rows" if number > 1 else "INSERT of a row",))

    def _upsert(self, table: Table) -> Step | None:
        if not table.conflict:
            return None
        number = self._source.choice((1, 1, 2, 3))
        values = tuple(
            rows.as_values(table.columns, rows.row(self._source, table, table.columns)) for _ in range(number)
        )
        names = ", ".join(column.name for column in table.columns)
        head = f"INSERT INTO {table.name} AS x ({names}) VALUES {{rows}} ON CONFLICT"
        if self._source.random() < 0.35:
            target = self._source.choice(("", f" ({', '.join(table.conflict)})"))
            return Step("change", f"{head}{target} DO NOTHING", rows=values, constructs=("ON CONFLICT DO NOTHING",))
        column = self._source.choice(self._free(table))
        value = self._source.choice((f"excluded.{column.name}", self._value(table, column, "x.")))
        where = f" WHERE {self._condition(table, 'x.')}" if self._source.random() < 0.25 else ""
        text = f"{head} ({', '.join(table.conflict)}) DO UPDATE SET {column.name} = {value}{where}"
        return Step("change", text, rows=values, constructs=("ON CONFLICT DO UPDATE",))

    def _from_other(self, table: Table) -> Step:
        """INSERT ... SELECT, whose keys may exist."""
        other = self._source.choice([item for item in self._tables if not item.is_stream])
        names = ", ".join(column.name for column in table.columns)
        scope = _scope(other, "")
        values = ", ".join(self._of_kind(scope, column) for column in table.columns)
        text = f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {other.name} WHERE {self._condition(other)}"
        return Step("change", text, constructs=("INSERT of a query",))

    def _moved(self, table: Table) -> Step | None:
        """Rows deleted in WITH that come back, changed."""
        column = self._source.choice(self._free(table))
        names = [item.name for item in table.columns]
        values = ", ".join(self._value(table, column) if name == column.name else name for name in names)
        if table.key:
            return None
        text = (
            f"WITH gone AS (DELETE FROM {table.name} WHERE {self._condition(table)} RETURNING *)"
            f" INSERT INTO {table.name} ({', '.join(names)}) SELECT {values} FROM gone"
        )
        return Step("change", text, constructs=("changes in WITH",))

    # -- UPDATE, DELETE --------------------------------------------------------------------------------------------

    def _update(self, table: Table) -> Step:
        chosen = self._source.sample(free := self._free(table), min(len(free), self._source.choice((1, 1, 2))))
        sets = ", ".join(f"{column.name} = {self._value(table, column)}" for column in chosen)
        where = "" if self._source.random() < 0.12 else f" WHERE {self._condition(table)}"
        text = f"UPDATE {table.name} SET {sets}{where}{self._returning(table)}"
        return Step("change", text, constructs=("UPDATE",))

    def _update_one(self, table: Table) -> Step | None:
        if table.single_key is None:
            return None
        column = self._source.choice(self._free(table))
        value = self._value(table, column)
        text = f"UPDATE {table.name} SET {column.name} = {value} WHERE {self._by_key(table.single_key)}"
        return Step("change", text, constructs=("UPDATE by key",))

    def _update_key(self, table: Table) -> Step | None:
        """Another key for one row, or another reference for some."""
        key = table.single_key
        references = [column for column in table.columns if column.references]
        if references and (key is None or self._source.random() < 0.4):
            column = self._source.choice(references)
            value = self._source.choice(("NULL", rows.written(column.kind, rows.key(self._source, column.kind))))
            text = f"UPDATE {table.name} SET {column.name} = {value} WHERE {self._condition(table)}"
            return Step("change", text, constructs=("UPDATE of a reference",))
        if key is None:
            return None
        value = rows.written(key.kind, rows.key(self._source, key.kind))
        text = f"UPDATE {table.name} SET {key.name} = {value} WHERE {self._by_key(key)}"
        return Step("change", text, constructs=("UPDATE of a key",))

    def _update_from(self, table: Table) -> Step | None:
        """UPDATE of rows by the row that each references."""
        links = [
            (column, other) for column in table.columns for other in self._tables if column.references == other.name
        ]
        if not links:
            return None
        link, other = self._source.choice(links)
        column = self._source.choice(self._free(table))
        key = other.single_key
        assert key is not None
        value = self._of_kind(_scope(other, "o."), column)
        text = (
            f"UPDATE {table.name} x SET {column.name} = {value} FROM {other.name} o"
            f" WHERE o.{key.name} = x.{link.name} AND {self._condition(other, 'o.')}"
        )
        return Step("change", text, constructs=("UPDATE FROM",))

    def _delete(self, table: Table) -> Step:
        key = table.single_key
        where = self._by_key(key) if key is not None and self._source.random() < 0.4 else self._condition(table)
        return Step("change", f"DELETE FROM {table.name} WHERE {where}{self._returning(table)}", constructs=("DELETE",))

    def _delete_using(self, table: Table) -> Step | None:
        other = self._source.choice([item for item in self._tables if not item.is_stream])
        related = self._scalars.pair(_scope(table, "x."), _scope(other, "o."), True)
        if related is None:
            return None
        text = f"DELETE FROM {table.name} x USING {other.name} o WHERE {related} AND {self._condition(other, 'o.')}"
        return Step("change", text, constructs=("DELETE USING",))

    def _truncate(self, table: Table) -> Step | None:
        if self._source.random() < 0.6:
            return None
        is_referenced = any(column.references == table.name for item in self._tables for column in item.columns)
        return Step("change", f"TRUNCATE {table.name}{' CASCADE' if is_referenced else ''}", constructs=("TRUNCATE",))

    def _merge(self, table: Table) -> Step | None:
        """MERGE with rows of distinct keys."""
        key = table.single_key
        if key is None:
            return None
        keys = sorted({rows.key(self._source, key.kind) for _ in range(self._source.randint(1, 4))})
        numbers = ("NULL::int", *rows.VALUES["int"])
        values = tuple(f"({rows.written(key.kind, item)}, {self._source.choice(numbers)})" for item in keys)
        column = self._source.choice(self._free(table))
        given = {
            key.name: "m.id",
            **{item.name: self._literal(item) for item in table.columns if item.name != key.name},
        }
        names = ", ".join(given)
        clauses = [
            f"WHEN MATCHED AND m.n > 3 THEN {self._source.choice(('DELETE', 'DO NOTHING'))}",
            f"WHEN MATCHED THEN UPDATE SET {column.name} = {self._value(table, column, 'x.')}",
            f"WHEN NOT MATCHED AND m.n IS NOT NULL THEN INSERT ({names}) VALUES ({', '.join(given.values())})",
        ]
        kept = [clause for clause in clauses if self._source.random() < 0.75] or clauses[1:2]
        text = f"MERGE INTO {table.name} x USING (VALUES {{rows}}) m (id, n) ON x.{key.name} = m.id {' '.join(kept)}"
        return Step("change", text, rows=values, constructs=("MERGE",))

    # -- parts -----------------------------------------------------------------------------------------------------

    def _free(self, table: Table) -> list[Column]:
        """Columns of no key: there is always one."""
        return [item for item in table.columns if not (item.name in table.key or item.is_unique or item.references)]

    def _returning(self, table: Table) -> str:
        if table.is_stream or self._source.random() > 0.12:
            return ""
        return f" RETURNING {', '.join(item.name for item in table.columns)}"

    def _condition(self, table: Table, prefix: str = "") -> str:
        return self._scalars.condition(_scope(table, prefix))

    def _by_key(self, key: Column) -> str:
        return f"{key.name} = {rows.written(key.kind, rows.key(self._source, key.kind))}"

    def _value(self, table: Table, column: Column, prefix: str = "") -> str:
        if self._source.random() < 0.15 and column.is_nullable:
            return "NULL"
        return self._scalars.exact(_scope(table, prefix), column.kind).text

    def _literal(self, column: Column) -> str:
        if column.references or column.is_unique:
            return "NULL" if column.is_nullable else rows.written(column.kind, rows.key(self._source, column.kind))
        return rows.literal(self._source, column.kind, typed=False)

    def _of_kind(self, scope: Scope, column: Column) -> str:
        return self._scalars.exact(scope, column.kind, 0).text


def _scope(table: Table, prefix: str) -> Scope:
    return tuple(Ref(f"{prefix}{item.name}", item.kind) for item in table.columns)
