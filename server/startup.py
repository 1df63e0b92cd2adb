"""From the first byte to ReadyForQuery: TLS and cancel requests, the startup packet, who may come in.

Owns: the answers before there is a session, and the check of role and database. Trust on loopback is the only method
so far: the configuration refuses to listen elsewhere. Clients that come before the database is open wait here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from catalog.errors import SqlError
from protocol import encoder
from protocol.messages import (
    CancelRequest,
    FrontendMessage,
    GSSENCRequest,
    SSLRequest,
    StartupMessage,
    Terminate,
)
from server.settings import Settings

if TYPE_CHECKING:
    from server.connection import Connection

#: The only role and the only database until the release that brings CREATE ROLE.
ROLE: Final = "millstream"
DATABASE: Final = "millstream"
_NOT_SETTINGS: Final = frozenset(("user", "database", "options", "replication"))


class Startup:
    """The handler of a connection that has no session yet."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def handle(self, message: FrontendMessage) -> Awaitable[None] | None:
        """One message before the session."""
        match message:
            case SSLRequest() | GSSENCRequest():
                self._connection.send(encoder.ENCRYPTION_NO)
            case CancelRequest(process=process, key=key):
                self._connection.server.cancels.cancel(process, key)
                self._connection.end()
            case StartupMessage():
                return self._start(message)
            case Terminate():
                self._connection.end()
            case _:
                raise SqlError("08P01", f"unexpected message {type(message).__name__}")
        return None

    def rest(self, request: bytes | None, output: bytes) -> None:
        """What comes next is for the session."""

    def failed(self, error: SqlError) -> None:
        """No error is survived before there is a session."""
        self._connection.end(error)

    def cancel(self) -> None:
        """Nothing runs yet."""

    async def close(self) -> None:
        """Nothing to give up."""

    async def _start(self, message: StartupMessage) -> None:
        connection, parameters = self._connection, message.parameters
        server = connection.server
        if len(server.connections) > server.config.max_connections:
            raise SqlError("53300", "sorry, too many clients already")
        user, name = _identity(parameters)
        settings = Settings({**server.defaults, "session_authorization": user, **startup_settings(parameters)})
        unknown = [option for option in parameters if option.startswith("_pq_.")]
        if unknown or message.version[1] > 0:
            connection.send(encoder.negotiate_protocol_version(0, unknown))
        connection.flush()
        database = await server.wait_open()
        if connection.is_lost:
            return
        from server.relations import own_relations
        from server.session import Session  # needs the executor, which the opening of the database has loaded

        session = Session(connection, database.session(user, name), settings, user, name)
        session.db.describe_itself(own_relations(session))
        connection.handler = session
        connection.machine.authenticated()
        connection.send(encoder.AUTHENTICATION_OK)
        session.report_settings()
        connection.send(encoder.backend_key_data(session.backend.process, session.backend.key))
        session.ready()


def _identity(parameters: dict[str, str]) -> tuple[str, str]:
    user = parameters.get("user", "")
    if not user:
        raise SqlError("28000", "no PostgreSQL user name specified in startup packet")
    if user != ROLE:
        raise SqlError("28000", f'role "{user}" does not exist', hint=f'This release has the one role "{ROLE}".')
    name = parameters.get("database") or user
    if name != DATABASE:
        hint = f'This release has the one database "{DATABASE}".'
        raise SqlError("3D000", f'database "{name}" does not exist', hint=hint)
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise SqlError("0A000", "replication connections are not supported")
    return user, name


def startup_settings(parameters: dict[str, str]) -> dict[str, str]:
    """Settings that a startup packet gives by name and by ``options`` (-c name=value, --name=value)."""
    found = _options(parameters.get("options", ""))
    for name, value in parameters.items():
        if name not in _NOT_SETTINGS and not name.startswith("_pq_."):
            found[name] = value
    return found


def _options(text: str) -> dict[str, str]:
    words = iter(shlex.split(re.sub(r"\\(.)", r"'\1'", text)))
    found = {}
    for word in words:
        if word == "-c":
            word = "--" + next(words, "")
        elif word.startswith("-c"):
            word = "--" + word[2:]
        name, separator, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not separator:
            raise SqlError("42601", f"invalid command-line argument for server process: {word}")
        found[name.replace("-", "_")] = value
    return found
