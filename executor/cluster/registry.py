"""The servers that share a storage: an entry for each, with a lease and an epoch.

Owns: the entries. A server that joins, and one whose lease has run out, get the next **epoch**. Claims of an older
epoch are void, and a server that stood still and acts in an older epoch notices it before each write (the fencing token
of Kleppmann's "How to do distributed locking"; leases: Gray and Cheriton, SOSP 1989). No clocks are compared: a
heartbeat touches the entry, and each server measures by its own clock for how long no heartbeat of another came.

    <storage>/servers/<name>.json    its entry, touched by its heartbeat
    <storage>/servers/<name>.lock    held by its process: a name belongs to one
"""

from __future__ import annotations

import datetime as dt
import fcntl
import hmac
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from catalog.os_errors import UNREADABLE
from catalog.values.errors import SqlError
from executor.cluster.storage import Storage
from executor.options import is_server_name

_FOLDER: Final = "servers"
#: States of a server that does its work; a drained one gets none from others.
_LIVING: Final = frozenset(("up", "draining", "drained"))
#: The state of an adopted server: no server joins by its name any more.
_ADOPTED: Final = "adopted"
#: Heartbeats in a lease.
_BEATS: Final = 4
#: Seconds between two looks at the other servers, and the pause after which this server itself must have stood still.
LOOKS: Final = 0.5
_STOOD_STILL: Final = 2 * LOOKS

_LOGGER = logging.getLogger(__name__)


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """A server. ``state`` is up, draining, drained (all that can leave has left), stopped, lost (its lease ran out), or
    adopted: its streams belong to its ``heir``. ``moved`` is the number of queries that have left it while it was
    drained. ``log`` is the folder of its log, relative to the storage or absolute. ``staged`` are the entries that its
    views get once they belong to the heir; they are there before rows can come to the heir's streams."""

    name: str
    address: str
    epoch: int
    lease: float
    state: str = "up"
    moved: int = 0
    log: str = ""
    heir: str = ""
    staged: Sequence[Mapping[str, Any]] = ()

    @property
    def is_adopted(self) -> bool:
        """Whether the server will never run again."""
        return self.state == _ADOPTED

    @property
    def is_living(self) -> bool:
        """Whether the server has neither ended nor been lost."""
        return self.state in _LIVING


class _Watched(Struct):
    """The last heartbeat that was seen of another server, and for how many seconds no other came."""

    epoch: int
    beat: int
    silent: float = 0.0


class Registry:
    """The servers of a storage, and this server's place among them. Safe for many threads, but for ``silent``."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        address: str,
        lease: float,
        clock: Callable[[], float] = time.monotonic,
        log: str = "",
    ) -> None:
        """``lease`` is in seconds; ``log`` is the folder of the server's log, for other servers."""
        self.name = name
        self._address, self._lease, self._log = address, lease, log
        self._storage = storage
        self._folder = storage.folder / _FOLDER
        #: The descriptor that keeps other processes from this name.
        self._held: int | None = None
        #: The epoch of this process; 0 until it has joined.
        self.epoch = 0
        self._watched: dict[str, _Watched] = {}
        self._clock = clock
        self._looked = clock()
        #: Seconds between two heartbeats.
        self.pause = lease / _BEATS

    def join(self) -> None:
        """Makes this process the server of its name, in the next epoch. Raises 55006 where another process is, and
        55000 where the server of that name was adopted."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._held = self._hold()
        self._looked = self._clock()
        try:
            with self._storage.exclusive():
                self._storage.sweep()
                self.epoch = self._next_epoch()
                self._put(Member(self.name, self._address, self.epoch, self._lease, log=self._log))
        except BaseException:
            self._release()
            raise

    @cached_property
    def identity(self) -> str:
        """This server's name with a digest of the storage's key, since servers of other storages may have the same
        name. Raises what ``Storage.key`` raises."""
        return f"{self.name}.{hmac.digest(self._storage.key, self.name.encode(), 'sha256').hex()[:16]}"

    def _next_epoch(self) -> int:
        """The epoch after that of the entry. Where the entry is damaged, the present time in seconds, which no server
        can have reached by counting its starts, so that no earlier claim counts."""
        try:
            before = self.get(self.name)
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            _LOGGER.warning("%s: it is replaced, and this server joins again", error.message)
            return int(time.time())
        if before is not None and before.is_adopted:
            self._release()
            raise adopted(self.name, before.heir)
        return 1 if before is None else before.epoch + 1

    def _hold(self) -> int:
        """The descriptor that keeps other processes from this name as long as this process lives."""
        file = os.open(self._folder / f"{self.name}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise SqlError("55006", f'a server called "{self.name}" uses this storage already') from None
        return file

    def close(self) -> None:
        """Leaves in order, so that other servers need not wait for the end of the lease."""
        if self._held is None:
            return
        with suppress(SqlError), self._storage.exclusive():
            own = self.get(self.name)
            if own is not None and own.epoch == self.epoch:
                self._put(replace(own, state="stopped"))
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            os.close(self._held)
        self._held = None

    # Members -----------------------------------------------------------------------------------------------

    def all(self) -> list[Member]:
        """All servers that ever joined, by name, but for those whose entries are damaged. Raises 58030."""
        self._storage.require_answer()
        names = sorted(path.stem for path in self._folder.glob("*.json") if is_server_name(path.stem))
        found = []
        for name in names:
            try:
                found.append(self.get(name))
            except SqlError as error:
                if error.sqlstate in UNREADABLE:
                    raise
        return [member for member in found if member is not None]

    def get(self, name: str) -> Member | None:
        """A server; None where no server has that name. Raises XX001 for a damaged entry."""
        return read_member(self._storage, name)

    def address(self, name: str) -> str:
        """The address of a server for clients; '' where it is unknown."""
        try:
            found = self.get(name)
        except SqlError:
            return ""
        return "" if found is None else found.address

    def require(self, name: str) -> Member:
        """A server. Raises 42704."""
        found = self.get(name)
        if found is None:
            raise SqlError("42704", f'server "{name}" does not exist', hint="millstream.servers lists the servers.")
        return found

    def require_target(self, name: str) -> Member:
        """Another server that takes queries. Raises 42704, 55000."""
        found = self.require(name)
        if found.name == self.name:
            raise SqlError("55000", f'server "{name}" is this one')
        if found.state != "up":
            raise SqlError("55000", f'server "{name}" is {found.state} and takes no queries')
        return found

    def targets(self) -> list[Member]:
        """The other servers that accept queries and views."""
        return [member for member in self.all() if member.state == "up" and member.name != self.name]

    def beaten(self, name: str) -> dt.datetime | None:
        """The time of a server's last heartbeat, by the storage's clock; None where it has no entry."""
        with suppress(FileNotFoundError):
            return dt.datetime.fromtimestamp((self._folder / f"{name}.json").stat().st_mtime, dt.UTC)
        return None

    # Leases -----------------------------------------------------------------------------------------------------

    def beat(self) -> bool:
        """Renews the lease; False where it was taken over. Raises OSError; the silence of the other servers does not
        count then, since they cannot reach the storage either."""
        try:
            os.utime(self._folder / f"{self.name}.json")
        except OSError:
            self._watched.clear()
            raise
        own = self.get(self.name)
        return own is not None and own.epoch == self.epoch

    def require_current(self) -> None:
        """Raises 55000 where this server's lease was taken over: it must not write. The caller has the storage's
        lock."""
        own = self.get(self.name)
        if own is None or own.epoch != self.epoch:
            raise SqlError(
                "55000",
                f'server "{self.name}" must not write to the storage: its lease was taken over',
                hint="Restart it, and it joins again.",
            )

    def silent(self) -> list[Member]:
        """The living servers of which no heartbeat came for the length of their leases. Time in which this server
        itself did not look does not count: it may have stood still."""
        now = self._clock()
        step, self._looked = min(now - self._looked, _STOOD_STILL), now
        found = []
        for member in self.all():
            if member.name == self.name or not member.is_living:
                self._watched.pop(member.name, None)
                continue
            beat = self._beat_of(member.name)
            seen = self._watched.get(member.name)
            if seen is None or (seen.epoch, seen.beat) != (member.epoch, beat):
                self._watched[member.name] = _Watched(member.epoch, beat)
                continue
            seen.silent += step
            if seen.silent > member.lease:
                found.append(member)
        return found

    def take_over(self, member: Member) -> bool:
        """Ends a server's epoch, and with it all its claims; False where another server has done so, or the server
        runs."""
        with self._storage.exclusive():
            self.require_current()
            seen = self._watched.get(member.name)
            if seen is None or self.get(member.name) != member or self._beat_of(member.name) != seen.beat:
                return False
            self._put(replace(member, epoch=member.epoch + 1, state="lost"))
            return True

    def adopt(self, name: str) -> None:
        """Makes this server the heir of a server that does not run; that server never runs again. Raises as
        ``require_heir``."""
        with self._storage.exclusive():
            member = self.require_heir(name)
            self.require_current()
            if member.heir != self.name:
                self._put(replace(member, epoch=member.epoch + 1, state=_ADOPTED, heir=self.name, staged=()))

    def stage(self, name: str, views: Sequence[Mapping[str, Any]]) -> None:
        """Notes the entries that the views of an adopted server get. Raises 42704, 55000."""
        with self._storage.exclusive():
            member = self.require_heir(name)
            self.require_current()
            assert member.heir == self.name
            self._put(replace(member, staged=views))

    def require_heir(self, name: str) -> Member:
        """A server that this server has adopted, or may adopt. Raises 42704, and 55000 where it runs or has another
        heir."""
        member = self.require(name)
        if member.is_living:
            raise SqlError("55000", f'server "{name}" runs', hint="It counts as lost when its lease has expired.")
        heir = self.last_heir(name)
        if heir not in ("", self.name):
            raise adopted(name, heir)
        return member

    def last_heir(self, name: str) -> str:
        """The end of the chain of heirs of a server; '' where it was not adopted. Raises XX001 for a chain that is a
        circle, which no server writes."""
        found, seen = name, {name}
        while (heir := self.heir(found)) != "":
            if heir in seen:
                raise _not_written(found)
            found = heir
            seen.add(heir)
        return "" if found == name else found

    def heir(self, name: str) -> str:
        """The server that has adopted a server's streams; '' where there is none or it is unknown."""
        try:
            found = self.get(name)
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            return ""
        return "" if found is None else found.heir

    def mark(self, name: str, state: str, moved: int = 0) -> None:
        """Gives a living server another state. Raises 42704, 55000."""
        with self._storage.exclusive():
            member = self.require(name)
            if not member.is_living:
                raise SqlError("55000", f'server "{name}" is not running')
            self.require_current()
            self._put(replace(member, state=state, moved=moved))

    def _beat_of(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return (self._folder / f"{name}.json").stat().st_mtime_ns
        return 0

    def _put(self, member: Member) -> None:
        self._storage.write(self._folder / f"{member.name}.json", to_builtins(member))


def read_member(storage: Storage, name: str) -> Member | None:
    """A server's entry, also before this server has joined; None where there is none. Raises XX001."""
    if not is_server_name(name):
        return None
    document = storage.read(storage.folder / _FOLDER / f"{name}.json")
    if document is None:
        return None
    try:
        found = convert(document, Member)
    except ValidationError as error:
        raise _not_written(name) from error
    if found.name != name:
        raise _not_written(name)
    return found


def _not_written(name: str) -> SqlError:
    return SqlError("XX001", f'the entry of server "{name}" is damaged')


def adopted(server: str, heir: str) -> SqlError:
    """The error of a server whose streams belong to another server."""
    hint = (
        "Write to the streams on that server, and give a new server another server_name. "
        f"If that server is lost as well: SELECT millstream.adopt('{heir}')."
    )
    return SqlError("55000", f'the streams of server "{server}" belong to server "{heir}" now', hint=hint)
