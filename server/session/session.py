"""One client's session: its parts, and what it does with each message and with the error of one.

Owns: which parts there are (``transaction``, ``work`` on threads, ``copy``, ``reports`` to the client and others), the
prepared statements and portals, and what is said when a message ends. Which message does what is in
``server.messages.simple``, ``server.messages.extended`` and ``server.query.copy.copying``; what statements mean is the
executor's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from catalog.system.names.oid_names import names_of
from catalog.values.errors import SqlError, failed_transaction
from catalog.values.types import SqlType
from executor.core.memory import held_share
from executor.queries.client import Client
from executor.sql.session import DatabaseSession
from planner.bind.state.context import restricted
from planner.cancellation import cancelled
from planner.parse.parser import Raw
from protocol import encoder
from protocol import messages as m
from server.notify.channels import Listening
from server.notify.mailbox import Mailbox
from server.operations.statement_log import logs
from server.plans.output_styles import PLAIN, check_styles
from server.plans.planning import Plan, Surroundings, surroundings
from server.session.activity import Activity, now
from server.session.applied_settings import AppliedSettings
from server.session.cancellable_work import CancellableWork
from server.session.copy_state import CopyState
from server.session.cursors import Cursors
from server.session.identity import is_superuser
from server.session.idle_timeouts import IdleClock
from server.session.portals import Portal, Portals
from server.session.prepared import Statements
from server.session.reports import Reports
from server.session.transaction.members import Members
from server.session.transaction.transaction import Transaction, is_end
from server.settings.settings import Settings

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.plans.answer_cache import Answered
    from server.services import Services

_UNNAMED: Final = frozenset(("",))
_EXCEEDED: Final = "The server's process has reached memory_limit, and this session has taken the most."
_LESS: Final = "Fetch or change fewer rows or shorter values at a time, or set a larger memory_limit."

logger = logging.getLogger(__name__)


class Pipelines(Protocol):
    """Answers what a pipeline repeats."""

    size: int

    def follow(self, portal: Portal, known: Answered) -> None:
        """Answers what has come behind the Execute of a portal."""
        ...

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request of known parts; None for another one."""
        ...


class Recogniser(Protocol):
    """Answers requests that have the bytes of an earlier one, and what pipelines repeat."""

    size: int

    @property
    def series(self) -> Pipelines:
        """What answers a pipeline's parts."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether no more than one statement was noted since the session was at rest."""
        ...

    def note(self, answered: Answered) -> None:
        """A statement was answered without a thread."""
        ...

    def rest(self, request: bytes | None, output: bytes) -> None:
        """The session is at rest; what it got since it last was, and its answer."""
        ...

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request; None for one that must be taken apart."""
        ...


#: What acts on a message: at once, or until what it returns has ended.
MessageHandler = Callable[["Session", Any], Awaitable[None] | None]


class Parts(Struct, frozen=True):
    """What a session is put together from, above it: the handlers of messages, the functions that SQL calls of it, and
    what answers its repeated requests."""

    handlers: Mapping[type, MessageHandler]
    call: Callable[..., Any]
    express: Callable[[Session], Recogniser]


class Session:
    """One client after the start-up. On the event loop's thread, but for what ``work`` is given."""

    def __init__(
        self,
        connection: Connection,
        server: Services,
        parts: Parts,
        db: DatabaseSession,
        settings: Settings,
        user: str,
        key_length: int = 4,
    ) -> None:
        self.connection = connection
        self.server = server
        self._handlers = parts.handlers
        self.db = db
        self.settings = settings
        self.backend = server.cancels.register(self.cancel, key_length, user)
        self.activity = Activity(self.backend.started, server.transaction_numbers)
        self.reports = Reports(connection, server, settings, self.activity)
        self.idle = IdleClock(server.loop, connection.end)
        self.applied = AppliedSettings(settings, db, connection, self.idle, self.reports)
        self.copy = CopyState()
        self.work = CancellableWork(connection, server, db, settings, self.copy)
        mailbox = Mailbox(self, server.change_channels)
        self.listening = Listening(server.channels, mailbox, self.backend.process, mailbox.follow)
        self.statements = Statements()
        self.portals = Portals()
        self.cursors = Cursors()
        members = Members((settings, self.cursors, self.portals, self.listening))
        self.transaction = Transaction(db, settings, self.activity, self.work, self.listening, self.portals, members)
        self.express = parts.express(self)
        db.reader.client = self._client
        db.notify, db.ask = self.listening.notify, partial(parts.call, self)

    def _client(self) -> Client:
        is_gone = self.connection.is_lost or self.server.is_ending
        return Client(self.backend.process, self.user, self.activity.query, is_gone, self.activity.transaction_time)

    @property
    def user(self) -> str:
        """The current role."""
        return self.settings.role

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas of search_path that the current role may use."""
        catalog = self.db.catalog
        return catalog.usable(self.settings.search_path(), restricted(catalog, self.user))

    def names(self, kind: str, oids: Iterable[int]) -> dict[int, str]:
        """What oids of a type such as regclass are called."""
        return names_of(self.db.catalog, kind, oids, self.path)

    # -- messages ----------------------------------------------------------------------------------------------

    def handle(self, message: m.FrontendMessage) -> Awaitable[None] | None:
        """Acts on one message."""
        self.work.begin()
        if self.idle.is_running:
            self.idle.stop()
        if self.settings.escapes or self.reports.conforming is not None:
            message = self.reports.read(message)
        return self._handlers[type(message)](self, message)

    def rest(self, request: bytes | None, output: bytes) -> Callable[[bytes], bytes | None] | None:
        """No message is left to act on: what may answer the next bytes at once."""
        if self.connection.transcoder is None:  # else bytes are not what the express compares
            self.express.rest(request, output)
        is_idle = self.transaction.is_idle
        if is_idle and self.listening.listener.send():
            self.connection.flush()
        at_rest = is_idle and not self.portals and not self.settings.changed and self.copy.running is None
        at_rest = at_rest and self.connection.transcoder is None and not self.settings.escapes
        at_rest = at_rest and not self.listening.channels  # a listening session is notified between any two statements
        at_rest = at_rest and not logs(self.applied.logs, above="ddl")
        return self.express.answer if at_rest and not self.idle.is_running else None

    @property
    def is_at_ease(self) -> bool:
        """Whether the end of a batch asks for nothing but ReadyForQuery."""
        is_told = not self.settings.changed and self.settings.key is self.applied.key
        is_waited = any(self.idle.limits) or bool(self.listening.listener.told_bytes) or bool(self.listening.channels)
        return self.transaction.is_idle and is_told and not is_waited and self.portals.keys() <= _UNNAMED

    @property
    def is_under_way(self) -> bool:
        """Whether a transaction or a COPY is begun."""
        return not self.transaction.is_idle or self.copy.running is not None

    def failed(self, error: SqlError) -> Awaitable[None] | None:
        """Answers an error and undoes what it makes undone."""
        ready = self.connection.machine.fail()
        logger.debug("error pid=%d %s", self.backend.process, error)
        self.reports.send_error(error)
        self.transaction.pending.clear()
        if self.copy.running is not None or self.transaction.implicit:
            return self._undo(ready)
        self.transaction.fail()
        if ready:
            self.ready()
        return None

    async def _undo(self, ready: bool) -> None:
        await self.copy.abort()
        if self.transaction.implicit:
            await self.transaction.fail_implicit()
        else:
            self.transaction.fail()
        if ready:
            self.ready()

    def ready(self) -> None:
        """ReadyForQuery, after the settings that have changed."""
        if self.settings.changed:
            self.report_settings()
        self.settings.see(self.db.temporary.label)
        if self.settings.key is not self.applied.key:
            self.applied.apply()
        status = self.db.status
        if any(self.idle.limits):
            self.idle.start(status != "I")
        if status == "I":
            self.listening.listener.send()
        self.connection.send(encoder.READY_FOR_QUERY[status])

    def report_settings(self) -> None:
        """ParameterStatus of every reported setting that the client does not know yet."""
        for name, value in self.settings.report(is_superuser(self)):
            self.connection.send(encoder.parameter_status(name, value))

    # -- ends --------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stops what the session does now, if it does anything."""
        self.work.cancel(cancelled())

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows of cursors, and of a COPY that has not ended."""
        return self.copy.held_bytes + self.cursors.size

    @property
    def held_share(self) -> int:
        """Bytes of the rows that one of its cursors may hold; 0 without a limit."""
        return held_share(self.db.database.core.options.memory_limit)

    def exceed(self) -> None:
        """Ends the running statement with 53200; without one, the session, for what it holds."""
        error = SqlError("53200", "out of memory", _EXCEEDED, _LESS)
        if self.copy.running is not None or self.connection.is_busy:
            self.work.cancel(error)
        else:
            self.connection.end(error)

    async def close(self) -> None:
        """The client is gone and nothing runs for it: rolls back."""
        self.idle.stop()
        self._log_end()
        self.server.cancels.forget(self.backend)
        self.portals.clear()  # and what they have begun to read
        self.cursors.close(None)
        await self.copy.abort()
        await self.work.run(self._close)

    def _log_end(self) -> None:
        if self.server.config.log_disconnections:
            logger.info(
                "disconnection pid=%d user=%s database=%s host=%s port=%d session_time=%s",
                *(self.backend.process, self.backend.login, self.db.name, *self.connection.peer),
                now() - self.backend.started,
            )

    def _close(self) -> None:
        try:
            self.listening.close()
        finally:
            self.db.close()

    # -- statements --------------------------------------------------------------------------------------------

    @property
    def surroundings(self) -> Surroundings:
        """What a statement is bound against now."""
        return surroundings(self.db.catalog, self.settings, self.db.name, self.db.database.separation.columns)

    def parse(self, text: str) -> tuple[Raw, ...]:
        """The statements of a text. Raises 42601 and 54000."""
        return self.server.plans.parse(text)

    def plan_allowed(self, raw: Raw, types: tuple[SqlType | None, ...], around: Surroundings) -> Plan:
        """The plan of a statement; in a failed transaction only of one that ends it. Raises 25P02."""
        failed = self.db.status == "E"
        try:
            plan = self.server.plans.plan(raw, types, around)
        except SqlError:
            if failed:
                raise failed_transaction() from None
            raise
        if failed and not is_end(plan.statement):
            raise failed_transaction()
        return plan

    def starts_statement(self, plan: Plan) -> None:
        """What each statement outside a transaction has of its own: now(). Passes on what the executor must know."""
        self.applied.apply()
        if plan.styled is not PLAIN:
            check_styles(plan.styled, self.settings)
        self.activity.begin_statement(plan.raw.text)
        self.transaction.begin_statement()
