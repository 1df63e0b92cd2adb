"""The owner of each continuous view that has ever left its server: exactly one server, by compare-and-swap on the
storage.

Owns: the entries. The old owner maintains a view until the new one has taken it. Both give right answers meanwhile,
since the rows are in the log of the view's home; the entry decides which server continues.

    <storage>/views/<name>.json
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from catalog.struct_types import Typed
from catalog.values.errors import SqlError
from executor.cluster.registry import Registry, adopted
from executor.cluster.storage import Storage
from executor.failpoints import failpoint

FOLDER: Final = "views"
#: The owner of a view that is suspended.
NOBODY: Final = ""
#: Names of views among servers, and of their handovers: those of files.
_NAME: Final = re.compile(r"[0-9a-f]{16}")


class Owned(Struct, frozen=True):
    """The entry of a view. ``home`` has its stream (by its oid there); ``owner`` maintains it, or is to continue it
    while it is not ``taken``; ``giver`` is the owner before.

    ``handover`` names the states with which an owner begins, which are of the home's LSN ``at``; ``older`` names those
    before, for the case that they are damaged. ``error`` is why an owner gave the view back, with its SQLSTATE, and
    ``failure`` the error that is the view's value. ``copied``: the view is at its home, and the states are a copy from
    which another server can continue. ``unasked``: the copy is automatic, so it ends with the next change of the
    definition of the view or its stream, and a server that continues the view gives it back."""

    name: str
    view: str
    home: str
    stream: int
    owner: str
    giver: str
    handover: str
    at: int
    taken: bool = False
    error: tuple[str, str] | None = None
    failure: tuple[str, str] | None = None
    older: str = ""
    copied: bool = False
    unasked: bool = False

    @property
    def is_suspended(self) -> bool:
        """Whether no server maintains the view or is to continue it."""
        return self.owner == NOBODY

    @property
    def kept(self) -> set[str]:
        """The handovers from which a server may continue."""
        return set() if self.is_at_home else {self.handover, self.older}

    @property
    def is_at_home(self) -> bool:
        """Whether the home maintains the view, and its states are nowhere else."""
        return self.taken and self.owner == self.home and not self.copied

    def worker(self, server: str, handover: str) -> str:
        """The server that maintains the view now, as known by a ``server`` that has continued ``handover`` last."""
        has_begun = self.owner == server and self.handover == handover
        return self.owner if self.taken or has_begun else self.giver


_TYPED: Final = Typed((Owned,))


class Ownership:
    """The entries of a storage, read and changed by one server. Safe for many threads."""

    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry

    def get(self, name: str) -> Owned | None:
        """A view's entry; None where it has none. Raises XX001."""
        return read_owned(self._storage, name)

    def all(self) -> list[Owned]:
        """All entries that can be read. Raises 58030."""
        return all_owned(self._storage)

    def change(self, before: Owned | None, after: Owned) -> None:
        """Replaces an entry that is still ``before``. Raises 55000 where it is not, for a zombie, and where another
        server has adopted the view's home: only that server changes the entry then."""
        with self._storage.exclusive():
            self._registry.require_current()
            heir = self._registry.last_heir(after.home)
            if heir not in ("", self._registry.name):
                raise adopted(after.home, heir)
            if self.get(after.name) != before:
                raise SqlError("55000", f'view "{after.view}" has migrated to another server meanwhile')
            failpoint("view-entry")
            self._storage.write(_path(self._storage, after.name), to_builtins(after))

    def delete(self, name: str) -> None:
        """Deletes the entry of a dropped view. Raises 55000 for a zombie."""
        with self._storage.exclusive():
            self._registry.require_current()
            self._storage.delete(_path(self._storage, name))


def _error(told: object) -> tuple[str, str] | None:
    if told is None:
        return None
    if not isinstance(told, list):
        raise TypeError("an error is two words")
    sqlstate, message = told
    return str(sqlstate), str(message)


def _path(storage: Storage, name: str) -> Path:
    return storage.folder / FOLDER / f"{name}.json"


def all_owned(storage: Storage) -> list[Owned]:
    """All entries that can be read, also before this server has joined the others. Raises 58030 where the storage does
    not answer."""
    storage.require_answer()
    found = []
    for path in sorted((storage.folder / FOLDER).glob("*.json")):
        try:
            item = read_owned(storage, path.stem)
        except SqlError:
            continue  # a request for that view gets the reason
        if item is not None:
            found.append(item)
    return found


def require_past(storage: Storage, home: str, lsn: int) -> None:
    """Raises 55000 where an entry of a view of ``home`` is beyond ``lsn``, the end of this server's log: this data
    folder is not the one that the view has left, though its server has the same name."""
    for owned in all_owned(storage):
        if owned.home == home and owned.at > lsn:
            raise SqlError(
                "55000",
                f'the data folder does not belong to server "{home}", which view "{owned.view}" has left',
                hint="Restore the data folder, or give this server another server_name.",
            )


def read_owned(storage: Storage, name: str) -> Owned | None:
    """A view's entry, also before this server has joined the others. Raises XX001."""
    document = storage.read(_path(storage, name))
    return None if document is None else as_owned(document, name)


def as_owned(document: Mapping[str, Any], name: str) -> Owned:
    """The entry in a document. Raises XX001."""
    document = dict(document)
    try:
        error, failure = (_error(document.pop(key, None)) for key in ("error", "failure"))
        found = Owned(**document, error=error, failure=failure)
        _TYPED.require(found)
        names = {found.name, found.handover, found.older} - {""}
        if found.name != name or not all(map(_NAME.fullmatch, names)):
            raise ValueError("it belongs to another view")
    except (TypeError, ValueError) as error:
        raise SqlError("XX001", f'the entry of view "{name}" is damaged: {error}') from error
    return found
