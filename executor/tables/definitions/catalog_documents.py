"""The catalog in the tables' file: a complete document, followed by one document for each change.

Owns: where the documents are stored, and when a new complete document replaces the changes. This limits the size that a
definition writes to its own size, and the size that a start reads to twice the catalog's.
``executor.definitions.stored_catalog`` defines the content.
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
#: The most characters of changes without a new complete document.
_FEW: Final = 64 << 10


class Documents(Struct, frozen=True):
    """The complete document (None: there is none yet), and the changes after it in order, each with its record's
    LSN."""

    whole: str | None = None
    changes: tuple[tuple[int, str], ...] = ()
    size: int = 0  # characters of the changes

    def then(self, lsn: int, changes: Sequence[str]) -> Documents:
        """The documents with the changes of one more record."""
        more = tuple((lsn, change) for change in changes)
        return replace(self, changes=self.changes + more, size=self.size + sum(map(len, changes)))

    @property
    def lsn(self) -> int:
        """The LSN of the last change, which the file then contains; 0 without changes after the complete document."""
        return self.changes[-1][0] if self.changes else 0

    @property
    def is_long(self) -> bool:
        """Whether a complete document should replace the changes."""
        return self.whole is None or self.size > max(_FEW, len(self.whole))


def load(connection: Connection) -> Documents:
    """Reads the file's documents and prepares the file for more."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_CHANGES}(place BIGINT, lsn BIGINT, document VARCHAR)")
    whole = next((text for (text,) in connection.rows(f"SELECT value FROM {_META} WHERE key = 'catalog'")), None)
    changes = connection.rows(f"SELECT lsn, document FROM {_CHANGES} ORDER BY lsn, place")
    return Documents(whole, tuple(changes), sum(len(text) for _, text in changes))


def save(connection: Connection, known: Documents, lsn: int, changes: Sequence[str]) -> Documents:
    """Adds the changes of one record to the file. Concurrent transactions that do so do not conflict."""
    places = enumerate(changes)
    rows = ", ".join(f"({place}, {lsn}, {_quoted(change)})" for place, change in places)
    connection.execute(f"INSERT INTO {_CHANGES} VALUES {rows}")
    return known.then(lsn, changes)


def compact(connection: Connection, lsn: int, document: str) -> Documents:
    """Replaces the file's documents with the complete catalog, in a transaction that sees all changes up to an LSN."""
    connection.execute(f"DELETE FROM {_CHANGES}")
    connection.execute(f"DELETE FROM {_META} WHERE key = 'catalog'")
    connection.execute(f"INSERT INTO {_META} VALUES ('catalog', {_quoted(document)}), ('applied_lsn', '{lsn}')")
    return Documents(document)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
