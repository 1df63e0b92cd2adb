"""The error that a continuous view has in the place of a value, and which errors become one."""

from __future__ import annotations

from msgspec import Struct

from catalog.objects import RowPolicy
from catalog.values.errors import SqlError

#: SQLSTATE classes of resources, locks, cancellation, files and snapshots: the rows are not to blame for these.
_CIRCUMSTANCES = ("53", "55", "57", "58", "72")


class ViewError(Struct, frozen=True):
    """Why a view has no value any more, and where in the log that happened (architecture, section 1); 0 where that was
    not in the log.

    ``policy`` is what the view's ``on_error`` was then: under another one it goes on from the log. It is None where the
    view's states here are not those of before the row.
    """

    error: SqlError
    lsn: int
    policy: RowPolicy | None = None

    def raised(self) -> SqlError:
        """What a read raises: each its own, since an error that is raised again and again keeps the frames of all."""
        detail = self.error.detail
        if self.lsn:  # a row did it
            detail = f"A row that arrived at or before LSN {self.lsn} makes the view's query fail."
        return SqlError(self.error.sqlstate, self.error.message, detail, self.error.hint)


def is_of_the_rows(error: SqlError) -> bool:
    """Whether an error will come again whenever the same rows are processed, and so is the view's value."""
    return not error.sqlstate.startswith(_CIRCUMSTANCES)
