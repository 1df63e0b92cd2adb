"""Which changes of a statement leave a check of a deferred constraint waiting, as PostgreSQL's queue of trigger events.

Owns: ``QueuedChecks``. While a check waits, the changed table can be neither truncated nor altered (``deferral``), even
where the check has nothing to find. A change waits for nothing where it cannot break the constraint:

    a new row                      always, even with a NULL
    a new version of a row         its key has no NULL, and is another one or the old version is of this transaction
    a referenced row goes          NO ACTION, and its key has no NULL
    ... or gets another key        NO ACTION, and its old key has no NULL
    a unique key                   a row met another one with the key when it came, even if that one was changed after

PostgreSQL checks again the versions that its own transaction made, as the check of a version that is replaced does
nothing. MATCH FULL refuses a key with a NULL beside a value at once, so that it has the same rules.

See RI_FKey_fk_upd_check_required and RI_FKey_pk_upd_check_required in PostgreSQL's ri_triggers.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from catalog.objects import ForeignKey, Table
from executor.printing.nodes import quoted
from executor.tables.changes import Change
from executor.tables.constraints.referring_rows import Referring, numbered
from executor.tables.constraints.unique_keys import Key
from planner.algebra.nodes import ROW_ID

#: DuckDB numbers the rows that a transaction has made itself from here on.
_FIRST_OWN: Final = 36_028_797_018_960_000


class QueuedChecks(Struct, frozen=True):
    """The checks that one statement queues if their constraints are deferred."""

    referring: Referring

    def of_reference(self, table: Table, reference: ForeignKey, change: Change) -> bool:
        """Whether it is to be checked that rows which came have their partners."""
        if change.inserted.num_rows > change.updated:
            return True
        pairs = _with_key(change.replaced, reference.columns)
        if (pairs.row_ids.to_numpy() >= _FIRST_OWN).any():
            return True
        return self.referring.given_up(table, reference.columns, pairs) is not None

    def of_referenced(self, table: Table, reference: ForeignKey, change: Change) -> bool:
        """Whether it is to be checked that no row refers to the rows that went."""
        parts = ((reference.on_update, change.replaced), (reference.on_delete, change.removed))
        columns = reference.target_columns
        keys = (self.referring.given_up(table, columns, part) for action, part in parts if action == "a")
        return any(found is not None and found.drop_null().num_rows for found in keys)

    def of_key(self, table: Table, key: Key, change: Change) -> bool:
        """Whether a new version of a row met the old version of a row that was replaced after it. The statement has
        left none of these rows with the key of another."""
        pairs, connection = change.replaced, self.referring.connection
        rows = (part.select(list(key.uses)) for part in (pairs.deleted, pairs.inserted))
        before, after = f"__before{table.oid}", f"__after{table.oid}"
        names = {name: numbered(part, pairs.row_ids) for name, part in zip((before, after), rows, strict=True)}
        connection.bind(names)
        same = " AND ".join(f"o.{quoted(name)} = n.{quoted(name)}" for name in key.columns)
        old, new = (key.among(f'"{name}"') for name in names)
        query = f"SELECT 1 FROM {old} o JOIN {new} n ON {same} WHERE o.{ROW_ID} > n.{ROW_ID} LIMIT 1"
        found = connection.rows(query)
        connection.unbind(names)
        return bool(found)


def _with_key(pairs: Change, columns: Sequence[str]) -> Change:
    """The pairs whose new versions have no NULL in these columns."""
    known: npt.NDArray[np.bool_] = np.ones(pairs.updated, bool)
    for name in columns:
        known &= pairs.inserted.column(name).is_valid().to_numpy()
    kept = pa.array(known)
    row_ids, deleted, inserted = (part.filter(kept) for part in (pairs.row_ids, pairs.deleted, pairs.inserted))
    return Change(row_ids, deleted, inserted, inserted.num_rows)
