"""Array columns whose values say their bounds and dimensions.

Owns: the table's definition once a column needs them. PostgreSQL ignores the number of dimensions that a column is
declared with. Here a column starts with lists, which engines compute without looking at dimensions, and is widened when
the first value arrives that is not a list.
"""

from __future__ import annotations

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Table
from catalog.values.errors import SqlError
from catalog.values.nested_types import delimiter_of
from catalog.values.types import shaped
from planner.bind.binder import new_binding
from planner.bind.definitions.alter_table.alteration import finish, start
from planner.bind.definitions.alter_table.altered_columns import widen
from planner.bind.state.context import Context
from planner.scales import with_scales
from planner.statements.definitions import AlterTable


def widened(catalog: Catalog, table: Table) -> AlterTable | None:
    """The table with arrays of any dimensions wherever nothing forbids it; None where something does everywhere."""
    change = start(new_binding(Context(catalog)), table)
    for column in filter(may_be_widened, table.columns):
        assert column.type.element is not None
        try:
            widen(change, column, shaped(column.type.element))
        except SqlError:
            continue  # a view or a generated column reads it
    if not change.gone:
        return None
    altered = with_scales(finish(change, "ALTER TABLE"), catalog.objects, change.binding.column)
    assert isinstance(altered, AlterTable)
    return altered


def may_be_widened(column: ColumnDefinition) -> bool:
    """Whether a column has arrays that say no dimensions, and could have others."""
    kind = column.type
    if kind.name != "array" or kind.element is None or delimiter_of(kind.element) != ",":
        return False
    return column.generated is None and (column.domain == 0 or column.domain % 2 == 0)
