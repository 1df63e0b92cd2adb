"""pg_cancel_backend(), millstream.suspend() and their kin: what one session asks of the server or of another.

Owns: the privileges needed. Called in a session's worker thread; what happens to another session happens on the loop's.

https://www.postgresql.org/docs/15/functions-admin.html#FUNCTIONS-ADMIN-SIGNAL
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.roles import SIGNAL_BACKEND
from catalog.values.errors import SqlError
from executor.separation.running_queries import Wish
from planner.algebra.nodes import Value
from server.net.connection import SHUTDOWN
from server.session.identity import is_superuser
from server.session.lock_relations import sessions

if TYPE_CHECKING:
    from server.session.session import Session


def reload(session: Session) -> bool:
    """Reads the table of hosts and the certificates anew; whether they are in force."""
    if not is_superuser(session):
        raise SqlError("42501", "permission denied for function pg_reload_conf")
    return session.server.access.reload()


def cancel(session: Session, process: Value) -> bool | None:
    """Cancels what another session does now; whether there is such a session."""
    if process is None:
        return None
    other = _told_other(session, process)
    if other is None:
        return False
    _require_power(session, other, "cancel", "query", "query is being canceled")
    session.server.loop.call_soon_threadsafe(other.cancel)
    return True


def terminate(session: Session, process: Value, timeout: Value = 0) -> bool | None:
    """Ends another session, without waiting for its end; whether there is such a session."""
    if process is None or timeout is None:
        return None
    other = _told_other(session, process)
    if other is None:
        return False
    _require_power(session, other, "terminate", "process", "process is being terminated")

    def end() -> None:
        other.cancel()
        other.connection.end(SHUTDOWN)

    session.server.loop.call_soon_threadsafe(end)
    return True


def suspend(session: Session, process: Value) -> str | None:
    """Takes another session's query out of the server: the query's id; None where it ended before it could."""
    return _leave(session, process, "suspend")


def checkpoint(session: Session, process: Value) -> str | None:
    """Writes a copy of what the query has done; the query continues."""
    return _leave(session, process, "checkpoint")


def migrate(session: Session, process: Value, server: Value) -> str | None:
    """Another server goes on with another session's query, whose client gets its rows as if it had stayed: the query's
    id; None where it ended before it could leave."""
    return None if server is None else _leave(session, process, "migrate", str(server))


def drain(session: Session, server: Value) -> int | None:
    """All queries and views that can leave a server; how many did. NOTICEs say so while they do."""
    if not is_superuser(session):
        raise SqlError("42501", "permission denied for function drain")
    if server is None:
        return None

    def tell(moved: int) -> None:
        have = "query or view has" if moved == 1 else "queries and views have"
        session.reports.report(SqlError("00000", f'server "{server}": {moved} {have} left'))

    return session.db.database.separation.moving.drain(str(server), session.work.is_cancelled, tell)


def adopt(session: Session, server: Value) -> int | None:
    """The streams of a server that is gone for good are this one's, with its views; how many these are."""
    if not is_superuser(session):
        raise SqlError("42501", "permission denied for function adopt")
    return None if server is None else session.db.database.view_migration.adopt(str(server))


def _leave(session: Session, process: Value, wish: Wish, target: str = "") -> str | None:
    if process is None:
        return None
    assert isinstance(process, int)
    other = _other(session, process)
    if other is not None:
        _require_power(session, other, "suspend", "query", "query is being suspended")
    return session.db.database.separation.ask(wish, process, session.work.is_cancelled, target)


def leave_by_id(session: Session, query_id: str, wish: Wish, target: str = "") -> str | None:
    """What ``suspend`` and its kin do, of a query that runs here by its id, also for another server's session."""
    client = session.db.reader.client()
    return session.db.database.separation.ask_for(client, wish, query_id, session.work.is_cancelled, target)


def forget(session: Session, query_id: Value) -> bool | None:
    """Deletes a separated query; whether there was one."""
    return (
        None if query_id is None else session.db.database.separation.forget(session.db.reader.client(), str(query_id))
    )


def _told_other(session: Session, process: Value) -> Session | None:
    """The session of a process; where there is none, the client gets a warning and None is returned."""
    other = _other(session, process)
    if other is None:
        session.reports.report(SqlError("01000", f"PID {process} is not a PostgreSQL backend process"))
    return other


def _other(session: Session, process: Value) -> Session | None:
    return next((other for other in sessions(session.server.clients) if other.backend.process == process), None)


def _require_power(session: Session, other: Session, word: str, what: str, done: str) -> None:
    """Raises 42501 where the other session belongs to another role."""
    roles = session.db.catalog.roles
    own, its = roles.find(session.user), roles.find(other.backend.login)
    if own is not None and own.superuser:
        return
    if its is not None and its.superuser:
        raise SqlError("42501", f"must be a superuser to {word} superuser {what}")
    groups = frozenset() if own is None else roles.groups(own.oid, inherited=True)
    if not groups & {SIGNAL_BACKEND, -1 if its is None else its.oid}:
        raise SqlError("42501", f"must be a member of the role whose {done} or member of pg_signal_backend")
