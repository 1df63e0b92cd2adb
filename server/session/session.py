"""One client's session: settings, prepared statements, portals, and the transaction that they live in.

Owns: the session's state, how an error is answered, and how work gets to a thread and is cancelled there. Which message
does what is in ``server.messages.simple``, ``server.messages.extended`` and ``server.query.copy.copying``; what
statements mean is the executor's.

The transaction: ``db.status`` is I, T or E. Statements outside a block commit alone, or together until Sync (extended
protocol) or the end of the string (simple protocol), which is ``implicit``.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import is_temporary
from catalog.system.names.oid_names import names_of
from catalog.values.errors import SqlError, failed_transaction
from catalog.values.types import SqlType
from executor.core.memory import held_share
from executor.queries.client import Client
from executor.sql.session import DatabaseSession
from executor.subscriptions.arrival_scan import Patience
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.bind.state.context import restricted
from planner.cancellation import Calls
from planner.parse.parser import Raw
from planner.parse.string_escapes import Conforming, conforming
from planner.statements.statement import (
    CopyIn,
    CopyOut,
    Explain,
    Insert,
    Query,
    RowChange,
    Statement,
    TransactionControl,
)
from protocol import encoder
from protocol import messages as m
from protocol.values.transcoding import transcoder
from server.notify.channels import Listening
from server.notify.mailbox import Mailbox
from server.operations.statement_log import logs
from server.plans.output_styles import PLAIN, check_styles
from server.plans.planning import Plan, Surroundings, surroundings
from server.session.cursors import Cursors
from server.session.identity import is_superuser
from server.session.idle_timeouts import IdleClock
from server.session.notices import Notices
from server.session.portals import Made, Portal
from server.session.prepared import Prepared
from server.session.read_only import WRITES
from server.session.transaction_members import Members
from server.settings.settings import Settings

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.plans.answer_cache import Answered
    from server.services import Services

_Result = TypeVar("_Result")
_ENDS: Final = ("commit", "rollback", "rollback_to")
#: A cancel may come just before the engine begins what it should stop: it is repeated while the work goes on.
_CANCEL_AGAIN: Final = 0.05
#: Seconds that a statement has to end once it was cancelled: where the storage does not answer, or anywhere.
_HEARS: Final = 1.0
_STOPS: Final = 5.0
_UNNAMED: Final = frozenset(("",))
_EXCEEDED: Final = "The server's process has reached memory_limit, and this session has taken the most."
_LESS: Final = "Fetch or change fewer rows or shorter values at a time, or set a larger memory_limit."
_TIMEOUT: Final = "canceling statement due to statement timeout"

logger = logging.getLogger(__name__)


class Copying(Protocol):
    """A COPY FROM STDIN that has begun."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows that have come and are not taken yet."""
        ...

    @property
    def then(self) -> Callable[[], Awaitable[None]] | None:
        """What follows its end, if anything."""
        ...

    def feed(self, data: bytes) -> Awaitable[None] | None:
        """Takes the data of a message."""
        ...

    async def finish(self) -> int:
        """All data has come; how many rows it was."""
        ...

    def cancel(self, error: SqlError) -> None:
        """Ends it with an error."""
        ...

    async def abort(self) -> None:
        """Ends it; its rows are dropped."""
        ...


class Recogniser(Protocol):
    """Answers requests that have the bytes of an earlier one."""

    size: int

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


class Pipelines(Protocol):
    """Answers what a pipeline repeats."""

    size: int

    def follow(self, portal: Portal, known: Answered) -> None:
        """Answers what has come behind the Execute of a portal."""
        ...

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request of known parts; None for another one."""
        ...


#: What acts on a message: at once, or until what it returns has ended.
MessageHandler = Callable[["Session", Any], Awaitable[None] | None]


class Parts(Struct, frozen=True):
    """What a session is put together from, above it: the handlers of messages, the functions that SQL calls of it, and
    what answers its repeated requests."""

    handlers: Mapping[type, MessageHandler]
    call: Callable[..., Any]
    express: Callable[[Session], Recogniser]
    series: Callable[[Session], Pipelines]


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
        database_name: str,
        key_length: int = 4,
    ) -> None:
        self.connection = connection
        self.server = server
        self._handlers = parts.handlers
        self.db = db
        self._told: tuple[str, ...] = ()
        self.database = db.database
        self.settings = settings
        self.login = user  # the role that has logged in
        self.cursors = Cursors()
        self.database_name = database_name
        self.backend = self.server.cancels.register(self.cancel, key_length)
        db.reader.client = self._client
        self.notices = Notices(self, server)
        self.mailbox = Mailbox(self, server.view_channels)
        self.listening = Listening(self.server.channels, self.mailbox, self.backend.process, self.mailbox.follow)
        db.notify, db.ask = self.listening.notify, partial(parts.call, self)
        self.statements: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.members = Members((settings, self.cursors, Made(self.portals), self.listening))
        self.pending: list[tuple[Insert, list[tuple[Value, ...]]]] = []  # rows of a batch that Sync will append
        self.copying: Copying | None = None
        self.implicit = False
        self.express = parts.express(self)
        self.series = parts.series(self)
        self.idle = IdleClock(self.server.loop, connection.end)
        self.started = self.transaction_time = self.statement_time = _now()
        self.numbered: tuple[datetime.datetime | None, int] = (None, 0)  # a transaction that asked for its number
        self.logs = "none"  # which statements are logged
        self.query = ""  # the last statement that was not answered by express
        self._working = False
        #: What its threads call that hears of a cancel wherever it is.
        self.calls = Calls()
        connection.account.clocks = self.calls.clocks
        self._cancelled: SqlError | None = None
        self._written: Conforming | None = None  # the text of the message, where it is another than the client's
        self._to_end: object = None  # of the message that is worked on, once it was cancelled

    def _client(self) -> Client:
        is_gone = self.connection.is_lost or self.server.is_ending
        return Client(self.backend.process, self.user, self.query, is_gone)

    @property
    def user(self) -> str:
        """The current role."""
        return self.settings.role

    @property
    def held_share(self) -> int:
        """Bytes of the rows that one of its cursors may hold; 0 without a limit."""
        return held_share(self.database.options.memory_limit)

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas of search_path that the current role may use."""
        catalog = self.db.catalog
        return catalog.usable(self.settings.search_path(), restricted(catalog, self.user))

    def names(self, kind: str, oids: Iterable[int]) -> dict[int, str]:
        """What oids of a type such as regclass are called."""
        return names_of(self.db.catalog, kind, oids, self.path)

    @property
    def is_working(self) -> bool:
        """Whether a thread works for it."""
        return self._working

    @property
    def is_under_way(self) -> bool:
        """Whether a transaction or a COPY is begun."""
        return not self.is_idle or self.copying is not None

    # -- messages ----------------------------------------------------------------------------------------------

    def handle(self, message: m.FrontendMessage) -> Awaitable[None] | None:
        """Acts on one message."""
        self._cancelled = self._to_end = None  # what was meant for the message before
        if self.copying is None:
            self.connection.account.begin()
        if self.idle.is_running:
            self.idle.stop()
        if self.settings.escapes and isinstance(message, m.Query | m.Parse):
            message = self._conforming(message)
        else:
            self._written = None
        return self._handlers[type(message)](self, message)

    def _conforming(self, message: m.Query | m.Parse) -> m.Query | m.Parse:
        """A message with SQL text in which '...' has no escapes. Raises 0A000."""
        self._written = None
        self._written = found = conforming(message.text)
        if self.settings.is_on("escape_string_warning"):
            self.notices.send(found.warnings)
        return replace(message, text=found.text)

    def rest(self, request: bytes | None, output: bytes) -> Callable[[bytes], bytes | None] | None:
        """No message is left to act on: what may answer the next bytes at once."""
        if self.connection.transcoder is None:  # else bytes are not what the express compares
            self.express.rest(request, output)
        if self.is_idle and self.mailbox.send():
            self.connection.flush()
        at_rest = self.is_idle and not self.portals and not self.settings.changed and self.copying is None
        at_rest = at_rest and self.connection.transcoder is None and not self.settings.escapes
        at_rest = at_rest and not self.listening.channels  # a listening session is notified between any two statements
        at_rest = at_rest and not logs(self.logs, above="ddl")
        return self.express.answer if at_rest and not self.idle.is_running else None

    @property
    def is_at_ease(self) -> bool:
        """Whether the end of a batch asks for nothing but ReadyForQuery."""
        is_told = not self.settings.changed and self.settings.key is self._told
        is_waited = any(self.idle.limits) or bool(self.mailbox.told_bytes) or bool(self.listening.channels)
        return self.is_idle and is_told and not is_waited and self.portals.keys() <= _UNNAMED

    def failed(self, error: SqlError) -> Awaitable[None] | None:
        """Answers an error and undoes what it makes undone."""
        ready = self.connection.machine.fail()
        logger.debug("error pid=%d %s", self.backend.process, error)
        if self._written is not None and error.position is not None:
            error.position = self._written.position(error.position)
        self.connection.send(encoder.error_response(self.server.own_paths.hidden(error, self.query)))
        self.pending.clear()
        if self.copying is not None or self.implicit:
            return self._undo(ready)
        if self.db.status == "T":
            self.db.fail()
        self._answer_failure(ready)
        return None

    async def _undo(self, ready: bool) -> None:
        copy, self.copying = self.copying, None
        if copy is not None:
            await copy.abort()
        if self.implicit:
            self.implicit = False
            await self.work(self._fail_implicit)
        elif self.db.status == "T":
            self.db.fail()
        self._answer_failure(ready)

    def _fail_implicit(self) -> None:
        self.db.fail()
        self.db.commit_implicit()

    def _answer_failure(self, ready: bool) -> None:
        if self.db.status == "I":
            self.members.rollback()
            self.portals.clear()
        if ready:
            self.ready()

    def ready(self) -> None:
        """ReadyForQuery, after the settings that have changed."""
        if self.settings.changed:
            self.report_settings()
        self.settings.see(self.db.temporary.label)
        if self.settings.key is not self._told:
            self.tell_settings()
        if any(self.idle.limits):
            self.idle.start(self.db.status != "I")
        if self.db.status == "I":
            self.mailbox.send()
        self.connection.send(encoder.READY_FOR_QUERY[self.db.status])

    def report_settings(self) -> None:
        """ParameterStatus of every reported setting that the client does not know yet."""
        self.settings.superuser = is_superuser(self)
        for name, value in self.settings.report():
            self.connection.send(encoder.parameter_status(name, value))

    # -- work in threads ---------------------------------------------------------------------------------------

    async def work(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Calls a function that may block, in a worker thread. Raises 57014 when it was cancelled."""
        self._working = True
        self._cancel_again()  # a cancel may have come before there was a thread to stop
        try:
            call = partial(self.calls.within, function, *arguments)
            return await self.server.loop.run_in_executor(self.server.workers, call)
        except SqlError as error:
            if error.sqlstate == "57014":
                self.end_cancelled()
            raise
        finally:
            self._working = False

    async def portion(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """``work`` that a statement does again and again: it ends here if it was cancelled as the last one ended, or
        since."""
        self.end_cancelled()
        return await self.work(function, *arguments)

    def end_cancelled(self) -> None:
        """Raises why the statement was cancelled, if it was, and forgets it: a raised error keeps its frames alive, and
        if one of them knew it, so would each other, and what the statement reads would stay open."""
        error, self._cancelled = self._cancelled, None
        try:
            if error is not None:
                raise error from None
        finally:
            del error

    def is_cancelled(self) -> bool:
        """Whether what it does now is to stop."""
        return self._cancelled is not None

    def cancel(self, reason: str = "canceling statement due to user request") -> None:
        """Stops what the session does now, if it does anything."""
        self._stop(SqlError("57014", reason))

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows of cursors, and of a COPY that has not ended."""
        copied = 0 if self.copying is None else self.copying.held_bytes
        return copied + self.cursors.size

    def exceed(self) -> None:
        """Ends the running statement with 53200; without one, the session, for what it holds."""
        if self.copying is not None or self.connection.is_busy:
            self._stop(SqlError("53200", "out of memory", _EXCEEDED, _LESS))
        else:
            self.connection.end(SqlError("53200", "out of memory", _EXCEEDED, _LESS))

    def _stop(self, error: SqlError) -> None:
        if self.copying is not None:
            self.copying.cancel(error)
        elif self._working:
            self._cancelled = error
            self._cancel_again()
        elif self.connection.is_busy:  # between two portions
            self._cancelled = error
            self.connection.stop_draining()
        if self.connection.is_busy:
            self._to_end = told = object()
            self.server.loop.call_later(_HEARS, self._leave_behind, told, error.message)

    def _leave_behind(self, told: object, reason: str, waited: float = _HEARS) -> None:
        """What was cancelled waits for a storage that does not answer, as nothing ends, or computes what hears nothing:
        its client need not wait. The session ends when its thread does."""
        if self._to_end is not told or not self.connection.is_busy or self.connection.is_lost:
            return
        if self.database.shared.pulse.is_silent:
            detail = "The storage does not answer: it is not known whether the statement took effect."
        elif waited >= _STOPS:
            detail = "The statement does not stop, so the session ends: it is not known whether it took effect."
            logger.warning("session ends pid=%d: its cancelled statement does not stop", self.backend.process)
        else:
            self.server.loop.call_later(_HEARS, self._leave_behind, told, reason, waited + _HEARS)
            return
        self.connection.end(SqlError("57014", reason, detail))

    def _cancel_again(self) -> None:
        if self._working and self._cancelled is not None:
            self.db.cancel()
            self.interrupt()
            self.server.loop.call_later(_CANCEL_AGAIN, self._cancel_again)

    def interrupt(self) -> None:
        """Ends what its threads compute."""
        self.calls.interrupt()
        self.database.engine.interrupt(self.calls)

    def start_timer(self) -> Callable[[], None]:
        """Cancels what runs when it takes longer than statement_timeout; returns what takes that back."""
        seconds = self.settings.seconds("statement_timeout")
        if not seconds:
            return _nothing
        return self.server.loop.call_later(seconds, self.cancel, _TIMEOUT).cancel

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """A statement that ends where the block does; its timeout means no other."""
        stop = self.start_timer()
        try:
            yield
        finally:
            stop()
            if self._cancelled is not None and self._cancelled.message == _TIMEOUT:
                self._cancelled = self._to_end = None

    async def close(self) -> None:
        """The client is gone and nothing runs for it: rolls back."""
        self.idle.stop()
        self._log_end()
        self.server.cancels.forget(self.backend)
        self.portals.clear()  # and what they have begun to read
        self.cursors.close(None)
        if self.copying is not None:
            await self.copying.abort()
            self.copying = None
        await self.work(self._close)

    def _log_end(self) -> None:
        if self.server.config.log_disconnections:
            logger.info(
                "disconnection pid=%d user=%s database=%s host=%s port=%d session_time=%s",
                *(self.backend.process, self.login, self.database_name, *self.connection.peer),
                _now() - self.started,
            )

    def _close(self) -> None:
        try:
            self.listening.close()
        finally:
            self.db.close()

    # -- transactions ------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, so that the next statement sees what is committed."""
        return not self.implicit and not self.pending and self.db.status == "I"

    @property
    def reads_committed(self) -> bool:
        """Whether the next statement sees what is committed, and nothing of a transaction's own."""
        return not self.pending and self.db.reads_committed

    def begin_implicit(self) -> None:
        """What follows is one transaction until ``end_implicit``, unless a block is open."""
        if not self.implicit:
            if self.db.status == "I":
                self.transaction_time = _now()
                self.members.begin()
            self.implicit = True
            self.db.begin_implicit()

    async def end_implicit(self) -> None:
        """Commits an implicit transaction. Raises what the commit raises."""
        if not self.implicit:
            return
        await self.work(self.listening.committing, self._commit_implicit)
        self.implicit = False
        if self.db.status == "I":
            self.portals.clear()

    def _commit_implicit(self) -> None:
        self.db.commit_implicit()
        if self.db.status == "I":
            self.members.commit()

    def tell_settings(self) -> None:
        """Passes on the settings that the executor and the idle clock must know, if any setting has changed."""
        key = self.settings.key  # the same object as long as nothing changed
        if key is self._told:
            return
        self._told = key
        self.connection.transcoder = transcoder(self.settings.encoding)
        self.logs = self.settings.value("log_statement")
        self.db.user = self.user
        self.db.synchronous_commit = self.settings.value("synchronous_commit") != "off"
        self.db.read_only = self.settings.read_only
        self.db.serializable = self.settings.value("transaction_isolation") == "serializable"
        self.db.search_path = self.settings.search_path()
        self.db.time_zone = self.settings.value("TimeZone")
        self.db.lock_timeout = self.settings.seconds("lock_timeout")
        self.db.maintenance_engine = self.settings.value("maintenance_engine")
        self.db.query_engine = self.settings.value("query_engine")
        self.db.reader.separable = self.settings.value("separable")
        self.db.reader.checkpoint_interval = self.settings.seconds("checkpoint_interval")
        patience = Patience(self.settings.seconds("stream_timeout"), self.settings.seconds("stream_progress"))
        self.db.await_rows(patience, self.notices.report)
        names = ("idle_in_transaction_session_timeout", "idle_session_timeout")
        self.idle.limits = (self.settings.seconds(names[0]), self.settings.seconds(names[1]))

    def starts_statement(self, plan: Plan) -> None:
        """What each statement outside a transaction has of its own: now(). Passes on what the executor must know."""
        self.tell_settings()
        if plan.styled is not PLAIN:
            check_styles(plan.styled, self.settings)
        self.query = plan.raw.text
        self.statement_time = _now()
        if self.implicit:
            self.members.begin()
        elif self.db.status == "I":
            self.transaction_time = self.statement_time

    def check(self, statement: Statement) -> None:
        """Whether the transaction allows the statement. Raises 25P02 and 25006."""
        if self.db.status == "E" and not _is_end(statement):
            raise failed_transaction()
        match statement:
            case CopyOut(query=within) | Explain(analyze=True, statement=within):
                statement = within
            case _:
                pass
        if self.settings.read_only and isinstance(statement, tuple(WRITES)) and not _is_own(statement):
            word = WRITES[type(statement)]
            raise SqlError("25006", f"cannot execute {word} in a read-only transaction")
        if self.settings.read_only and isinstance(statement, Query) and statement.locking is not None:
            raise SqlError("25006", f"cannot execute SELECT {statement.locking.words} in a read-only transaction")

    def control(self, statement: TransactionControl) -> Result:
        """BEGIN and the like, with the settings that follow them. In a worker thread."""
        if statement.chain:
            return self._chained(statement)
        before = self.db.status
        if statement.action == "begin":
            isolation = statement.isolation or self.settings.value("default_transaction_isolation")
            result = self.db.execute(replace(statement, isolation=isolation, read_only=False))  # check() sees to it
            if before == "I":
                self._begun(statement)
            return result
        if statement.action == "commit":
            return self.listening.committing(partial(self._end, statement))
        if statement.action == "rollback":
            return self._end(statement)
        result = self.db.execute(statement)
        self.members.at_savepoint(statement.action, statement.name or "")
        return result

    def _chained(self, statement: TransactionControl) -> Result:
        """The block's end, and the beginning of another of the same isolation and access. Raises 25P01."""
        if self.db.status == "I":
            raise SqlError("25P01", f"{statement.action.upper()} AND CHAIN can only be used in transaction blocks")
        following = TransactionControl(
            "begin",
            isolation=self.settings.value("transaction_isolation"),
            read_only=self.settings.is_on("transaction_read_only"),
            deferrable=self.settings.is_on("transaction_deferrable"),
        )
        result = self.control(replace(statement, chain=False))
        self.transaction_time = self.statement_time
        self.control(following)
        return result

    def _end(self, statement: TransactionControl) -> Result:
        result = self.db.execute(statement)
        self.ended(result.tag)
        return result

    def ended(self, tag: str) -> None:
        """A block has ended, as its tag says."""
        (self.members.commit if tag == "COMMIT" else self.members.rollback)()
        self.portals.clear()

    def _begun(self, statement: TransactionControl) -> None:
        self.members.begin()
        if statement.isolation is not None:
            self.settings.set("transaction_isolation", statement.isolation, local=True)
        for name in ("read_only", "deferrable"):
            flag = getattr(statement, name)
            if flag is not None:
                self.settings.set(f"transaction_{name}", "on" if flag else "off", local=True)

    # -- plans -------------------------------------------------------------------------------------------------

    @property
    def surroundings(self) -> Surroundings:
        """What a statement is bound against now."""
        return surroundings(self.db.catalog, self.settings, self.database_name, self.database.separation.columns)

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
        if failed and not _is_end(plan.statement):
            raise failed_transaction()
        return plan


def _nothing() -> None:
    """No timer runs."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _is_end(statement: Statement) -> bool:
    return isinstance(statement, TransactionControl) and statement.action in _ENDS


def _is_own(statement: Statement) -> bool:
    """Whether a statement changes rows of a temporary table, which is no change of the database."""
    return isinstance(statement, RowChange | CopyIn) and is_temporary(statement.target)
