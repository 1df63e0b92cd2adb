"""Rows changed by a foreign key action: their defaults, and the conditions that they must meet.

Owns: binding a table's DEFAULT, CHECK and domains for such rows. This happens only when an action has found rows, with
the catalog that the statement sees, since a statement does not name the tables that its actions change.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Table
from executor.tables.statements.effects import Arguments, Effects
from planner.algebra.nodes import Column
from planner.bind.binder import bind_expression, new_binding
from planner.bind.changes.assignments import default_of
from planner.bind.conversion.domains import guards
from planner.bind.state.context import Context
from planner.bind.state.environment import Binding


class Following(Struct):
    """The rules for one statement."""

    effects: Effects
    arguments: Arguments
    catalog: Catalog

    def check(self, table: Table, rows: pa.Table) -> None:
        """Checks CHECK constraints and domains of new rows. Raises 23502 and 23514."""
        row, context = _row(table.stored), Context(self.catalog)
        checks = tuple((item.name, bind_expression(item.expression, row, context)) for item in table.checks)
        domains = guards(self._binding(), table.columns, row[: len(table.columns)])
        self.effects.check(table, (*domains, *checks), row, rows, self.arguments)

    def defaults(self, table: Table, names: tuple[str, ...], rows: pa.Table) -> dict[str, pa.ChunkedArray]:
        """The default values of some columns, for each of the rows. Raises the errors of the defaults' expressions."""
        row, binding, found = _row(table.stored), self._binding(), []
        for place, column in enumerate(table.columns):
            if column.name in names:
                found.append((Column(-1 - place, column.name, column.type), default_of(binding, column)))
        values = self.effects.computed(tuple(found), row, rows, self.arguments)
        return {column.name: values.column(place) for place, (column, _) in enumerate(found)}

    def _binding(self) -> Binding:
        return new_binding(Context(self.catalog))


def _row(columns: tuple[ColumnDefinition, ...]) -> tuple[Column, ...]:
    return tuple(Column(1 + place, item.name, item.type) for place, item in enumerate(columns))
