"""Who locks what, and who waits for whom: pg_locks, and what pg_blocking_pids() and pg_stat_activity say of it.

Owns: these rows. Besides advisory locks there is one: that of whoever writes tables, on the database as an object.
Relations stand there as what is used (``executor/relation_locks``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from catalog.privileges import DATABASE
from catalog.system.rows import Row
from executor.advisory import EXCLUSIVE, Lock
from executor.relation_locks import relation_locks

if TYPE_CHECKING:
    from server.session import Session

#: pg_database's own oid.
_OF_DATABASES: Final = 1262


def sessions(session: Session) -> Iterator[Session]:
    """Those that have started."""
    for connection in tuple(session.server.connections):
        other: Any = connection.handler
        if hasattr(other, "backend"):
            yield other


def lock_rows(session: Session) -> Iterator[Row]:
    """pg_locks."""
    for other in sessions(session):
        granted, waiting = other.db.advisory.locks.of(other.db.advisory)
        yield from (_row(other, _advisory(lock), lock.mode, True) for lock in granted)
        yield from (_row(other, _advisory(lock), lock.mode, False) for lock in waiting)
        if other.db.has_writer() or other.db.awaits_writer:
            where = {"locktype": "object", "classid": _OF_DATABASES, "objid": DATABASE, "objsubid": 0}
            yield _row(other, where, EXCLUSIVE, other.db.has_writer())
        for oid, mode in sorted(relation_locks(other.db.running, other.db.transaction)):
            yield _row(other, {"locktype": "relation", "relation": oid}, mode, True)


def _advisory(lock: Lock) -> Row:
    key = lock.key
    return {"locktype": "advisory", "classid": key.high, "objid": key.low, "objsubid": key.parts}


def _row(other: Session, where: Row, mode: str, granted: bool) -> Row:
    pid = other.backend.process
    about = {"database": DATABASE, "virtualtransaction": f"{pid}/0", "pid": pid}
    return {**about, **where, "mode": mode, "granted": granted, "fastpath": False}


def wait_rows(session: Session) -> Iterator[Row]:
    """A row for each session and each that it waits for."""
    every = {other.db.advisory: other for other in sessions(session)}
    for holder, other in every.items():
        blockers = holder.locks.blockers(holder)
        if other.db.awaits_writer:
            blockers += [one for one in every if one.has_writer()]
        for blocker in blockers:
            if blocker in every:
                yield {"waiter": other.backend.process, "blocker": every[blocker].backend.process}


def awaited(other: Session) -> str | None:
    """The kind of lock that a session waits for."""
    if other.db.awaits_writer:
        return "object"
    _, waiting = other.db.advisory.locks.of(other.db.advisory)
    return "advisory" if waiting else None
