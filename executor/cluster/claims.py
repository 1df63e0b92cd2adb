"""The owner of each separated query: at most one server at any moment, by compare-and-swap under the storage's lock.

Owns: the claims. A claim counts only in the epoch of its server: when the epoch ends (``registry``), all claims of it
are void at once, and a server that acts on one is refused before it writes. An **ordered** claim was given by another
server: its new owner has to begin the query.

    <storage>/claims/<query id>.json
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, ValidationError, convert, to_builtins

from catalog.values.errors import SqlError
from executor.cluster.registry import Registry
from executor.cluster.storage import Storage

_FOLDER: Final = "claims"


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A query belongs to a server, in one of its epochs."""

    server: str
    epoch: int
    ordered: bool = False


class Claims:
    """The claims of a storage, read and changed by one server. Safe for many threads."""

    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry
        self._folder = storage.folder / _FOLDER
        #: The claimed queries on which this server works.
        self._held: set[str] = set()

    def _path(self, query_id: str) -> Path:
        return self._folder / f"{query_id}.json"

    def require_answer(self) -> None:
        """Raises 58030 where the storage does not answer."""
        self._storage.require_answer()

    def require_storage(self) -> None:
        """Raises 58030 where the storage is not there."""
        self._storage.require()

    def get(self, query_id: str) -> Claim | None:
        """The valid claim of a query; None if no server has it. Raises XX001."""
        found = self._read(query_id)
        return found if found is not None and self._counts(found) else None

    def owner(self, query_id: str) -> str | None:
        """The server that owns a query; None also if its claim cannot be read."""
        with suppress(SqlError):
            found = self.get(query_id)
            return None if found is None else found.server
        return None

    def all(self) -> dict[str, Claim]:
        """All readable claims by query, void ones included."""
        self.require_answer()
        found: dict[str, Claim] = {}
        for path in self._folder.glob("*.json"):
            try:
                claim = self._read(path.stem)
            except SqlError:
                continue
            if claim is not None:
                found[path.stem] = claim
        return found

    def is_mine(self, claim: Claim) -> bool:
        """Whether a claim is this server's, in its present epoch."""
        return (claim.server, claim.epoch) == (self._registry.name, self._registry.epoch)

    def holds(self, query_id: str) -> bool:
        """Whether this server works on a query that it has claimed."""
        return query_id in self._held

    def take(self, query_id: str) -> None:
        """Claims a query for this server, to work on it. Raises 55006 where another server has it, and 55000 for a
        zombie."""
        with self._storage.exclusive():
            self._registry.require_current()
            self._require_free(query_id)
            self._put(query_id, Claim(self._registry.name, self._registry.epoch))
            self._held.add(query_id)

    def inherit(self, query_id: str, void: Claim) -> bool:
        """Orders a query of a lost server for this one; False if another server has claimed it meanwhile."""
        with self._storage.exclusive():
            self._registry.require_current()
            if self._read(query_id) != void or self._counts(void):
                return False
            self._put(query_id, Claim(self._registry.name, self._registry.epoch, ordered=True))
            return True

    def give(self, query_id: str, server: str) -> None:
        """Gives a query of this server to another server, which is to begin it. Raises 55000 where that server takes
        none."""
        with self._storage.exclusive():
            self._require_own(query_id)
            target = self._registry.require(server)
            if target.state != "up":
                raise SqlError("55000", f'server "{server}" is {target.state} and takes no queries')
            self._put(query_id, Claim(server, target.epoch, ordered=True))
            self._held.discard(query_id)

    @contextmanager
    def owned(self, query_id: str) -> Iterator[Storage]:
        """A context in which no other server can claim the query. Raises 55000 if it does not belong to this server."""
        with self._storage.exclusive():
            self._require_own(query_id)
            yield self._storage

    @contextmanager
    def freed(self, query_id: str) -> Iterator[Storage]:
        """A context in which a query of any owner is deleted; the owner's writes are refused from then on."""
        with self._storage.exclusive():
            self._registry.require_current()
            yield self._storage
            self._storage.delete(self._path(query_id))
            self._held.discard(query_id)

    def release(self, query_id: str) -> None:
        """Ends the work on a query, if this server works on it, and gives up its claim."""
        if query_id in self._held:
            self.decline(query_id)

    def decline(self, query_id: str) -> None:
        """Gives up this server's claim to a query, also one that it was to begin."""
        self._held.discard(query_id)
        with self._storage.exclusive():
            found = self._read(query_id)
            if found is not None and self.is_mine(found):
                self._storage.delete(self._path(query_id), lasting=False)

    def free(self, query_id: str) -> None:
        """Releases the claim of a query."""
        with self.freed(query_id):
            pass

    def drop_unheld(self, query_id: str) -> None:
        """Deletes a claim of this server to a query on which it does not work."""
        with self._storage.exclusive():
            found = self._read(query_id)
            if found is not None and self.is_mine(found) and not found.ordered and query_id not in self._held:
                self._storage.delete(self._path(query_id))

    def drop_void(self) -> None:
        """Deletes this server's claims of earlier epochs; their queries continue when a client asks for them."""
        with self._storage.exclusive():
            for query_id, claim in self.all().items():
                if claim.server == self._registry.name and not self._counts(claim):
                    self._storage.delete(self._path(query_id))

    def _read(self, query_id: str) -> Claim | None:
        document = self._storage.read(self._path(query_id))
        if document is None:
            return None
        try:
            return convert(document, Claim)
        except ValidationError as error:
            raise SqlError("XX001", f'the claim to query "{query_id}" is damaged') from error

    def _counts(self, claim: Claim) -> bool:
        owner = self._registry.get(claim.server)
        return owner is not None and owner.is_living and owner.epoch == claim.epoch

    def _require_free(self, query_id: str) -> None:
        found = self._read(query_id)
        if found is not None and self._counts(found) and not self.is_mine(found):
            raise SqlError("55006", f'query "{query_id}" is running on server "{found.server}"')

    def _require_own(self, query_id: str) -> None:
        self._registry.require_current()
        found = self._read(query_id)
        if found is None or not self.is_mine(found):
            raise SqlError("55000", f'query "{query_id}" does not belong to server "{self._registry.name}" any more')

    def _put(self, query_id: str, claim: Claim) -> None:
        # It counts in its server's epoch, which ends with the machine.
        self._storage.write(self._path(query_id), to_builtins(claim), lasting=claim.server != self._registry.name)
