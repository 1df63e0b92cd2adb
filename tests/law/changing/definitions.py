"""Random changes of definitions between transactions: of tables that views read, and of views that others stand on.

What is renamed has another name in all statements that are drawn later; views keep their meaning.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from tests.law.changing import rows
from tests.law.changing.relations import Named, named
from tests.law.changing.scalars import Scalars, Scope
from tests.law.changing.schemas import TYPES, Column, Table, draw_kind
from tests.law.changing.steps import Step, control

_REPLACED: Final = "CREATE OR REPLACE VIEW"


class TableDefinitions:
    """Draws ALTER TABLE, and changes the tables and relations from which others draw."""

    def __init__(self, source: random.Random, tables: list[Table], relations: list[Named]) -> None:
        self._source, self._tables, self._relations = source, tables, relations
        self._names = 0
        #: How many tables and columns have been renamed.
        self.renamed = 0

    def draw(self, may_rename: bool) -> Iterator[Step]:
        """A change of a table or of a stream; ``may_rename`` columns and tables."""
        table = self._source.choice(self._tables)
        forms = [self._added, self._added, self._tried, self._passing, self._key_dropped]
        if may_rename and not table.is_stream:
            forms += [self._column_renamed, self._column_renamed, self._renamed]
        yield from self._source.choice(forms)(table)

    def _added(self, table: Table) -> Iterator[Step]:
        """A column that statements use from then on."""
        kind = draw_kind(self._source, but="arr")
        column = Column(self._name("n"), kind)
        default = f" DEFAULT {rows.literal(self._source, kind)}" if self._source.random() < 0.6 else ""
        words = f"ADD COLUMN {column.name} {TYPES[kind]}{default}"
        yield self._alter(table, words, f"ADD COLUMN{' DEFAULT' * bool(default)}")
        self._replace(table, replace(table, columns=(*table.columns, column)))

    def _passing(self, table: Table) -> Iterator[Step]:
        """A column that no view uses, and that goes again."""
        name = self._name("n")
        yield self._alter(table, f"ADD COLUMN {name} integer DEFAULT 7", "ADD COLUMN DEFAULT")
        yield self._alter(table, f"DROP COLUMN {name}", "DROP COLUMN")

    def _key_dropped(self, table: Table) -> Iterator[Step]:
        """A foreign key goes, for good, or comes again before any row changes: it has its first name."""
        found = [
            item for item in table.columns if item.references and "_" not in f"{table.name}{item.name}{item.references}"
        ]
        if not found:
            return
        column = self._source.choice(found)
        name = f"{table.name}_{column.name}_fkey"
        yield self._alter(table, f"DROP CONSTRAINT {name}", "DROP CONSTRAINT of a foreign key")
        if self._source.random() < 0.4:
            words = f"ADD CONSTRAINT {name} FOREIGN KEY ({column.name}){column.constraint}"
            yield self._alter(table, words, "ADD CONSTRAINT of a foreign key")
            return
        free = replace(column, constraint="", references="")
        self._replace(table, replace(table, columns=tuple(free if item is column else item for item in table.columns)))

    def _tried(self, table: Table) -> Iterator[Step]:
        """A column in a block that is rolled back, between changes of its rows."""
        if table.is_stream:
            return
        name = self._name("n")
        yield control("BEGIN")
        yield self._alter(table, f"ADD COLUMN {name} integer DEFAULT 7", "ADD COLUMN that is rolled back")
        yield Step("change", f"UPDATE {table.name} SET {name} = 8 WHERE {name} IS NOT NULL", name=table.name)
        yield control("ROLLBACK")

    def _column_renamed(self, table: Table) -> Iterator[Step]:
        """A column has another name; ``a`` keeps its own, by which others look for it."""
        columns = [item for item in table.columns if item.name != "a"]
        if not columns:
            return
        column = self._source.choice(columns)
        name = self._name(column.name)
        self.renamed += 1
        yield self._alter(table, f"RENAME COLUMN {column.name} TO {name}", "RENAME COLUMN")
        self._replace(
            table,
            replace(
                table,
                columns=tuple(replace(item, name=name) if item is column else item for item in table.columns),
                key=tuple(name if item == column.name else item for item in table.key),
            ),
        )

    def _renamed(self, table: Table) -> Iterator[Step]:
        name = self._name(table.name)
        self.renamed += 1
        yield self._alter(table, f"RENAME TO {name}", "RENAME TO")
        self._replace(table, replace(table, name=name))
        for other in tuple(self._tables):
            columns = tuple(
                replace(item, references=name) if item.references == table.name else item for item in other.columns
            )
            if columns != other.columns:
                self._replace(other, replace(other, columns=columns))

    def _alter(self, table: Table, words: str, construct: str) -> Step:
        kind = "FOREIGN TABLE" if table.is_stream else "TABLE"
        constructs = (f"ALTER {kind} {construct}",)
        judged = f"ALTER TABLE {table.name} {words}"
        return Step(
            "alter", f"ALTER {kind} {table.name} {words}", judged=judged, name=table.name, constructs=constructs
        )

    def _name(self, base: str) -> str:
        self._names += 1
        return f"{base.partition('_')[0]}_{self._names}"

    def _replace(self, table: Table, other: Table) -> None:
        self._tables[self._tables.index(table)] = other
        place = next(place for place, item in enumerate(self._relations) if item.name == table.name)
        self._relations[place] = named(other)


class ViewDefinitions:
    """Draws views that are defined anew, by their steps; views that equal another query for the judge stay."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._scalars = Scalars(source)

    def created_again(self, name: str, steps: Sequence[Step]) -> Iterator[Step]:
        """A view is dropped with all that stand on it, and these are created again."""
        kind = "MATERIALIZED VIEW" if steps[0].text.startswith("CREATE MATERIALIZED") else "VIEW"
        several = "that others stand on" if len(steps) > 1 else "alone"
        text, judged = f"DROP {kind} {name} CASCADE", f"DROP VIEW {name} CASCADE"
        yield Step("alter", text, judged=judged, name=name, constructs=(f"DROP CASCADE of a view {several}",))
        for step in steps:
            yield step
            yield Step("read", f"SELECT * FROM {step.name}", name=step.name, constructs=("read of a view made again",))

    def replaced(self, name: str, step: Step, columns: Scope) -> Step | None:
        """A view with fewer rows; None for a materialized one, of which there is no replacement."""
        head, _, query = step.text.partition(" AS ")
        if not head.startswith("CREATE VIEW"):
            return None
        text = f"SELECT * FROM ({query}) x WHERE {self._scalars.condition(columns, 0)}"
        options = head.removeprefix(f"CREATE VIEW {name}")
        return replace(
            step,
            role="alter",
            text=f"{_REPLACED} {name}{options} AS {text}",
            judged=f"{_REPLACED} {name} AS {text}",
            constructs=(_REPLACED,),
        )


def first_definition(step: Step) -> Step:
    """The CREATE VIEW of a view that was replaced."""
    text, judged = (item.replace(_REPLACED, "CREATE VIEW", 1) for item in (step.text, step.judged or ""))
    return replace(step, role="view", text=text, judged=judged)
