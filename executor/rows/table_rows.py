"""A table's rows by its unique keys, in columns: what a read by key finds without an engine.

Owns: the rows of one definition of a table, and when so much has changed that the table should be read anew. Which
commits have changed them, and who may read when, is ``executor.key_access.table_keys``'s.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from catalog.objects import Table
from executor.rows.row_shapes import keys_of
from executor.traces.index import is_cheap
from executor.traces.keyed_rows import Change, KeyedRows

#: Changed rows that wear an index out: so many, and that share of the table's.
WORN_ROWS: Final = 4096
WORN_SHARE: Final = 0.1


class TableRows(KeyedRows):
    """A table's rows at one moment, under what has changed since."""

    def __init__(self, table: Table, rows: pa.Table, lsn: int) -> None:
        keys = keys_of(table)
        cheap = [key for key in keys if is_cheap(pa.schema([rows.schema.field(name) for name in key]), rows.num_rows)]
        super().__init__(rows, cheap, nulls=False)
        self.definition = table
        #: The LSN of the newest change in it; set before the change itself, so that a reader can tell.
        self.lsn = lsn
        self._enough: float = max(WORN_ROWS, rows.num_rows * WORN_SHARE)

    def is_of(self, table: Table) -> bool:
        """Whether these are the rows of a table as it is defined now."""
        return self.definition is table or self.definition == table

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that the table should be read anew."""
        return self.patched > self._enough

    def takes(self, rows: int) -> bool:
        """Whether to change so many rows here is worth it."""
        return self.patched + rows <= 4 * self._enough

    def patch(self, lsn: int, change: Change) -> None:
        """Takes a change."""
        self.lsn = lsn
        self.put(change)
