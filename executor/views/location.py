"""Where a continuous view is maintained: at this server, at another one, or nowhere while it is suspended.

Owns: the view's name among servers, which rows its home keeps for another server, and what reads are told while the
view is away; and the rows that a view's home has lent to a guest.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
from msgspec import Struct

from catalog.objects import View
from catalog.values.errors import SqlError
from catalog.values.identifiers import quote_name


class Away(Struct, frozen=True):
    """Another server maintains a view; ``server`` is '' while it is suspended and no server does."""

    server: str
    address: str

    def raised(self, view: View) -> SqlError:
        """What a read here raises."""
        if not self.server:
            return view_suspended(view)
        where = f"Connect to {self.address}" if self.address else "see its address in millstream.servers"
        return SqlError(
            "55000", f'view "{view.name}" is on server "{self.server}"', hint=f"{where}, or migrate the view back."
        )


def view_suspended(view: View) -> SqlError:
    """The error of a read of a suspended view."""
    name = ".".join(map(quote_name, (view.schema, view.name))).replace("'", "''")
    hint = f"SELECT millstream.resume('{name}') continues it."
    return SqlError("55000", f'view "{view.name}" is suspended', hint=hint)


class Location:
    """One view's. Read by any thread; changed with the view's lock held."""

    def __init__(self) -> None:
        #: The view's name among the servers of a storage, and how its states came here last; '' where it never left.
        self.shared = self.handover = ""
        #: Above this LSN another server still reads the streams' rows for the view.
        self.held: int | None = None
        #: What reads are told while the view is on another server.
        self.away: Away | None = None

    def name(self, shared: str) -> None:
        """The view has a name among servers."""
        self.shared = shared

    def hold(self, lsn: int | None) -> None:
        """The streams' rows above an LSN are kept for another server; None: no longer."""
        self.held = lsn

    def leave(self, away: Away, held: int) -> None:
        """The view is elsewhere, where the streams' rows above an LSN are read."""
        self.away, self.held = away, held

    def arrive(self, handover: str) -> None:
        """The view is here, with states that came by a handover ('' at its creation)."""
        self.away, self.handover = None, handover


class Lent(Struct, frozen=True):
    """Rows of a table of the view's home, at an LSN of that."""

    at: int
    rows: pa.Table


class Loans:
    """The rows of its home's tables that a guest has, by trace."""

    def __init__(self) -> None:
        #: Held while the home is asked for rows.
        self.asking = threading.Lock()
        self._lent: Mapping[str, Lent] = MappingProxyType({})

    @property
    def lent(self) -> Mapping[str, Lent]:
        """All of them; the mapping never changes."""
        return self._lent

    def take(self, lent: Mapping[str, Lent]) -> None:
        """The home has lent these rows."""
        self._lent = MappingProxyType({**self._lent, **lent})
