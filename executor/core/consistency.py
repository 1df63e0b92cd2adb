"""What files say of each other, compared at a start: the log, the tables' file, and what was noted of both.

Each file has checksums of its own, which do not tell that its end is missing, or that it is an older copy. Owns: the
comparison of positions. The end of the log is compared by the log itself (``executor.commit.control``), a view's
frontier by ``executor.database.reopening``, and a stream's names of files by its feed.
"""

from __future__ import annotations

from catalog.values.errors import SqlError
from executor.commit.log import Log
from executor.core.recycled_log import Forgotten
from executor.tables.store import TableStore

_HINT = "Restore the file, or restore the whole data folder from a backup."


def require_tables(log: Log, noted: Forgotten, tables: TableStore, is_log_end_known: bool) -> None:
    """The tables contain all that the log has forgotten, and the log all that they contain and what comes behind what
    it has forgotten. Raises XX001."""
    applied = tables.applied_lsn
    if noted.log is not None and log.first_lsn > noted.log:
        message = f"the log is corrupted: it begins after LSN {log.first_lsn}, and has recycled LSN {noted.log} at most"
        raise SqlError("XX001", f"{message}: its first segment is missing", hint=_HINT)
    if applied < min(noted.tables, log.first_lsn):
        message = f'"tables.duckdb" is damaged: it has changes up to LSN {applied}, expected {noted.tables}'
        if tables.is_new:
            message = '"tables.duckdb" is missing'
        raise SqlError("XX001", f"{message}, and the log begins after LSN {log.first_lsn}", hint=_HINT)
    if is_log_end_known and applied > log.last_lsn:
        message = f"the log is corrupted: it ends at LSN {log.last_lsn}, and the tables have changes up to {applied}"
        raise SqlError("XX001", message, hint=_HINT)
