"""A session with everything that acts on its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from server.fastpath.pipelined_reads import Series
from server.fastpath.recognised_requests import Express
from server.messages.handlers import HANDLERS
from server.session.functions.evaluation import call
from server.session.session import Parts, Session

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from server.net.connection import Connection
    from server.services import Services
    from server.settings.settings import Settings

_PARTS: Final = Parts(HANDLERS, call, lambda session: Express(session, Series(session)))


def open_session(
    connection: Connection,
    server: Services,
    db: DatabaseSession,
    settings: Settings,
    user: str,
    key_length: int,
) -> Session:
    """The session of a client that has logged in."""
    return Session(connection, server, _PARTS, db, settings, user, key_length)
