"""The catalog in the tables' file: now and then a whole document, and after it one for each change.

Owns: where the documents are kept, and when the changes have become so long that a whole one takes their place, which
bounds what a definition writes to its own size and what a start reads to twice the catalog's. Their content belongs to
``executor.definitions.stored_catalog``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import STORE

_META: Final = f"{STORE}.main.__millstream"
_CHANGES: Final = f"{STORE}.main.__changes"
#: Characters of changes up to which no whole document is written.
_FEW: Final = 64 << 10


class Documents(Struct, frozen=True):
    """A whole document (None: there is none yet), and the changes after it in order, each with its record's LSN."""

    whole: str | None = None
    changes: tuple[tuple[int, str], ...] = ()
    size: int = 0  # characters of the changes

    def then(self, lsn: int, changes: Sequence[str]) -> Documents:
        """These, and the changes of one record."""
        more = tuple((lsn, change) for change in changes)
        return replace(self, changes=self.changes + more, size=self.size + sum(map(len, changes)))

    @property
    def lsn(self) -> int:
        """The last change's, which the file then contains; 0 where there is none after the whole document."""
        return self.changes[-1][0] if self.changes else 0

    @property
    def is_long(self) -> bool:
        """Whether a whole document should take the changes' place."""
        return self.whole is None or self.size > max(_FEW, len(self.whole))


def load(connection: Connection) -> Documents:
    """What the file has; it is made ready for more."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_CHANGES}(place BIGINT, lsn BIGINT, document VARCHAR)")
    whole = next((text for (text,) in connection.rows(f"SELECT value FROM {_META} WHERE key = 'catalog'")), None)
    changes = connection.rows(f"SELECT lsn, document FROM {_CHANGES} ORDER BY lsn, place")
    return Documents(whole, tuple(changes), sum(len(text) for _, text in changes))


def save(connection: Connection, known: Documents, lsn: int, changes: Sequence[str]) -> Documents:
    """Adds the changes of one record to what the file has. Transactions that do so at once do not conflict."""
    places = enumerate(changes)
    rows = ", ".join(f"({place}, {lsn}, {_quoted(change)})" for place, change in places)
    connection.execute(f"INSERT INTO {_CHANGES} VALUES {rows}")
    return known.then(lsn, changes)


def compact(connection: Connection, lsn: int, document: str) -> Documents:
    """All of the catalog takes the place of what the file has, in a transaction that sees all changes up to an LSN."""
    connection.execute(f"DELETE FROM {_CHANGES}")
    connection.execute(f"DELETE FROM {_META} WHERE key = 'catalog'")
    connection.execute(f"INSERT INTO {_META} VALUES ('catalog', {_quoted(document)}), ('applied_lsn', '{lsn}')")
    return Documents(document)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
