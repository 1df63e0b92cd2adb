"""From the first byte to ReadyForQuery: TLS and cancel requests, the startup packet, authentication.

Owns: the answers before there is a session, their order, and the start-up packet's settings. Who a client must be is
``server.login.authentication``'s. Clients that come before the database is open wait here; a client that is not
authenticated ``authentication_timeout`` after the connection, or after the opening, is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.roles import Roles
from catalog.values.errors import SqlError
from catalog.values.identifiers import is_the_database
from protocol import encoder
from protocol.messages import (
    LONG_KEYS,
    NEWEST,
    CancelRequest,
    DirectTls,
    FrontendMessage,
    GSSENCRequest,
    PasswordMessage,
    PeerRequest,
    SSLRequest,
    StartupMessage,
    Terminate,
)
from server.login.authentication import Authentication, require_admission
from server.login.peers import Answering, Meeting
from server.session.identity import require_member
from server.settings.settings import Settings

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.services import Services

logger = logging.getLogger(__name__)

#: The only database.
DATABASE: Final = "millstream"
_NOT_SETTINGS: Final = frozenset(("user", "database", "options", "replication"))


class Login(Struct, frozen=True):
    """A log-in with its settings; ``given`` are those of the start-up packet, ``key_length`` is that of the protocol's
    cancel keys."""

    user: str
    database: str
    settings: Settings
    given: Mapping[str, str]
    key_length: int

    def beginning_with(self, defaults: Mapping[str, str], kept: Mapping[str, str]) -> Login:
        """With the settings that are kept for the role and the database, but for those that the client gives."""
        return replace(self, settings=Settings({**defaults, **kept, **self.given})) if kept else self


class Startup:
    """The handler of a connection that has no session yet."""

    backend = None

    def __init__(self, connection: Connection, server: Services) -> None:
        self._connection = connection
        self._server = server
        self._login: Login | None = None
        self._authentication: Authentication | None = None
        self._meeting: Meeting | None = None
        self._limit = self._limited()

    def handle(self, message: FrontendMessage) -> Awaitable[None] | None:
        """One message before the session."""
        match message:
            case SSLRequest():
                self._encrypt()
            case DirectTls(data=data):
                self._encrypt(data)
            case GSSENCRequest():
                self._connection.send(encoder.ENCRYPTION_NO)
                self._connection.require_nothing_behind("GSSAPI encryption")
            case CancelRequest(process=process, key=key):
                self._server.cancels.cancel(process, key)
                self._connection.end()
            case PeerRequest(nonce=nonce):
                return self._meet(nonce)
            case StartupMessage():
                return self._start(message)
            case PasswordMessage(data=data) if self._meeting is not None:
                return self._greet(self._meeting, data)
            case PasswordMessage(data=data):
                assert self._authentication is not None
                if self._authentication.answer(data):
                    return self._enter()
            case Terminate():
                self._connection.end()
            case _:
                raise SqlError("08P01", f"unexpected message {type(message).__name__}")
        return None

    def rest(self, request: bytes | None, output: bytes) -> None:
        """What comes next is for the session."""

    def failed(self, error: SqlError) -> None:
        """No error is survived before there is a session."""
        if self._login is not None and error.sqlstate != "28P01":  # which is logged where it is found
            user, address = self._login.user, self._connection.peer[0]
            logger.info("login failed user=%s address=%s reason=%s", user, address, error.message)
        self._connection.end(error)

    @property
    def is_under_way(self) -> bool:
        """Nothing runs yet."""
        return False

    def cancel(self) -> None:
        """Nothing runs yet."""

    @property
    def held_bytes(self) -> int:
        """Nothing is held yet."""
        return 0

    def exceed(self) -> None:
        """It takes little: nothing ends."""

    async def close(self) -> None:
        """The client is gone."""
        self._limit.cancel()

    def _limited(self) -> asyncio.TimerHandle:
        server = self._server
        return server.loop.call_later(server.config.authentication_timeout, self._late)

    def _late(self) -> None:
        """Drops a client that has not authenticated in time, since it takes the place of others."""
        self._connection.abort()

    def _encrypt(self, begun: bytes | None = None) -> None:
        connection = self._connection
        secured = self._server.access.secured
        if begun is not None and (secured is None or connection.tunnel is not None):
            raise SqlError("08P01", "invalid length of startup packet")
        if connection.tunnel is not None:
            raise SqlError("08P01", "unexpected message SSLRequest")
        if secured is None:
            connection.send(encoder.ENCRYPTION_NO)
            connection.require_nothing_behind("SSL")
            return
        if begun is None:
            connection.send(encoder.ENCRYPTION_YES)
        connection.encrypt(secured, begun)

    async def _meet(self, nonce: bytes) -> None:
        """Handles another server of the storage, or a client that claims to be one."""
        database = await self._server.wait_open()
        if not database.core.options.storage:
            raise SqlError("28000", "this server shares no storage with others")
        layer = self._connection.tunnel or self._server.access.secured
        self._meeting = Meeting(database.core.shared.key, nonce, b"" if layer is None else layer.fingerprint)
        self._connection.send(self._meeting.greeting)

    async def _greet(self, meeting: Meeting, given: bytes) -> None:
        """It is one: it may ask from now on."""
        meeting.require(given)
        self._limit.cancel()
        connection = self._connection
        self._server.clients.admit(connection)
        connection.handler = Answering(connection, self._server, await self._server.wait_open())
        connection.authenticated()
        connection.send(encoder.AUTHENTICATION_OK)

    async def _start(self, message: StartupMessage) -> None:
        connection, parameters = self._connection, message.parameters
        server = self._server
        user, name = _identity(parameters)
        given = {**startup_settings(parameters), "session_authorization": user}
        version = min(message.version, NEWEST)
        key_length = 32 if version >= LONG_KEYS else 4
        self._login = Login(user, name, Settings({**server.defaults, **given}), given, key_length)
        unknown = [option for option in parameters if option.startswith("_pq_.")]
        if unknown or message.version > NEWEST:
            connection.send(encoder.negotiate_protocol_version(version, unknown))
        connection.flush()
        self._limit.cancel()
        database = await server.wait_open()
        if connection.is_lost:
            return
        self._limit = self._limited()
        self._authentication = Authentication(connection, server, user, name, database.core.catalog.roles)
        if self._authentication.begin():
            await self._enter()

    async def _enter(self) -> None:
        """Starts the session of an authenticated client."""
        connection, login = self._connection, self._login
        assert login is not None
        database = await self._server.wait_open()
        self._server.clients.admit(connection)
        require_admission(self._server.clients, login.user, database.core.catalog, login.database)
        role = database.core.catalog.roles.find(login.user)
        login.settings.check_given(login.given, role is not None and role.superuser)
        login = login.beginning_with(self._server.defaults, _kept(database.core.catalog.roles, login.user))
        if login.settings.role != login.user:  # -c role=... in the start-up packet
            require_member(database.core.catalog.roles, login.user, login.settings.role)
        if login.database != DATABASE:
            hint = f'This server has the one database "{DATABASE}".'
            raise SqlError("3D000", f'database "{login.database}" does not exist', hint=hint)
        from executor.sql.session import DatabaseSession
        from server.messages.sessions import open_session  # with the executor, loaded as the database was opened
        from server.session.relations import own_relations

        db = DatabaseSession(database, login.user, login.database)
        session = open_session(connection, self._server, db, login.settings, login.user, login.key_length)
        db.describe_itself(own_relations(session))
        db.owner.pid = session.backend.process
        self._limit.cancel()
        connection.handler = session
        connection.authenticated()
        connection.send(encoder.AUTHENTICATION_OK)
        session.report_settings()
        connection.send(encoder.backend_key_data(session.backend.process, session.backend.key))
        session.ready()
        if self._server.config.log_connections:
            assert self._authentication is not None
            logger.info(
                "connection authorized pid=%d user=%s database=%s application_name=%s host=%s port=%d method=%s tls=%s",
                *(session.backend.process, login.user, login.database, login.settings.value("application_name")),
                *(*connection.peer, self._authentication.method, connection.tunnel is not None),
            )


def _identity(parameters: dict[str, str]) -> tuple[str, str]:
    user = parameters.get("user", "")
    if not user:
        raise SqlError("28000", "no PostgreSQL user name specified in startup packet")
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise SqlError("0A000", "replication connections are not supported")
    name = parameters.get("database") or user
    return user, DATABASE if is_the_database(DATABASE, name) else name


def _kept(roles: Roles, user: str) -> dict[str, str]:
    """What ALTER ROLE and ALTER DATABASE keep for a role's sessions, but for what no session takes any more."""
    from catalog.privileges import DATABASE as DATABASE_OID  # loads what the opening of the database has loaded

    role, found = roles.find(user), dict[str, str]()
    for name, value in ({} if role is None else roles.begins_with(role.oid, DATABASE_OID)).items():
        try:
            Settings({name: value})
        except SqlError as error:
            logger.warning("a setting stored for role %s is ignored: %s", user, error.message)
        else:
            found[name] = value
    return found


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
