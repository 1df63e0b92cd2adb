"""Locks and their waiters as rows: pg_locks, and the parts of pg_blocking_pids() and pg_stat_activity about them.

Owns: these rows, and under which of PostgreSQL's kinds each target stands. All rows of a table, its keys, and an
object's definition are objects of pg_class there, told apart by objsubid; a row that a key names is a tuple, whose page
and number are a hash of the key.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from catalog.privileges import DATABASE
from catalog.system.rows import Row
from executor.locks import targets
from executor.locks.manager import Shown

if TYPE_CHECKING:
    from server.net.clients import Clients
    from server.session.session import Session

#: The oids of pg_class and pg_namespace themselves.
_PG_CLASS: Final = 1259
_PG_NAMESPACE: Final = 2615
#: objsubid of what pg_class' object stands for.
_ROWS: Final = 1
_KEYS: Final = 2


def sessions(clients: Clients) -> Iterator[Session]:
    """Those that have started."""
    for connection in clients:
        other: Any = connection.handler
        if other.backend is not None:
            yield other


def lock_rows(session: Session) -> Iterator[Row]:
    """pg_locks."""
    for lock in session.db.locks.shown():
        if lock.owner.pid:
            yield _row(lock)


def _row(lock: Shown) -> Row:
    pid = lock.owner.pid
    about = {"database": DATABASE, "virtualtransaction": f"{pid}/0", "pid": pid, "mode": lock.mode.shown}
    return {**about, **_where(lock.target), "granted": lock.granted, "fastpath": False}


def _where(target: targets.Target) -> Row:
    match target:
        case targets.Relation(oid=oid):
            return {"locktype": "relation", "relation": oid}
        case targets.Advisory(high=high, low=low, parts=parts):
            return {"locktype": "advisory", "classid": high, "objid": low, "objsubid": parts}
        case targets.Row(oid=oid):
            number = zlib.crc32(repr((target.columns, target.key)).encode())
            return {"locktype": "tuple", "relation": oid, "page": number >> 16, "tuple": number & 0x7FFF}
        case targets.Rows(oid=oid):
            return {"locktype": "object", "classid": _PG_CLASS, "objid": oid, "objsubid": _ROWS}
        case targets.Keys(oid=oid):
            return {"locktype": "object", "classid": _PG_CLASS, "objid": oid, "objsubid": _KEYS}
        case targets.Definition(oid=oid):
            return {"locktype": "object", "classid": _PG_CLASS, "objid": max(oid, 0), "objsubid": 0}
        case targets.Name():
            number = zlib.crc32(repr((target.schema, target.name)).encode())
            return {"locktype": "object", "classid": _PG_NAMESPACE, "objid": number, "objsubid": 0}


def wait_rows(session: Session) -> Iterator[Row]:
    """A row for each session and each that it waits for."""
    for other in sessions(session.server.clients):
        for blocker in session.db.locks.blockers(other.db.owner):
            if blocker.pid:
                yield {"waiter": other.backend.process, "blocker": blocker.pid}


def awaited(other: Session) -> str | None:
    """The kind of lock that a session waits for."""
    request = other.db.owner.awaited
    return None if request is None else str(_where(request.target)["locktype"])
