"""What a session has its threads do, and how that is cancelled.

Owns: whether a thread works for the session, and the error with which its message is to end. A cancel is heard by what
computes (``planner.cancellation``, the engine), between two portions of rows, by a COPY, and while the client does not
read. The session itself ends where nothing hears it for some time.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from catalog.values.errors import SqlError
from planner.cancellation import Calls

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from server.net.connection import Connection
    from server.services import Services
    from server.session.copy_state import CopyState
    from server.settings.settings import Settings

_Result = TypeVar("_Result")
#: A cancel may come just before the engine begins what it should stop: it is repeated while the work goes on.
_CANCEL_AGAIN: Final = 0.05
#: Seconds that a statement has to end once it was cancelled: where the storage does not answer, or anywhere.
_HEARS: Final = 1.0
_STOPS: Final = 5.0
_TIMEOUT: Final = "canceling statement due to statement timeout"

logger = logging.getLogger(__name__)


class CancellableWork:
    """The calls in threads of one session. On the loop's thread, but for ``is_cancelled`` and what ``run`` is given."""

    def __init__(
        self, connection: Connection, server: Services, db: DatabaseSession, settings: Settings, copy: CopyState
    ) -> None:
        self._connection = connection
        self._server = server
        self._db = db
        self._settings = settings
        self._copy = copy
        #: Whether a thread works for the session.
        self.is_running = False
        #: What its threads call that hears of a cancel wherever it is.
        self.calls = Calls()
        connection.account.follow(self.calls.clocks)
        self._cancelled: SqlError | None = None
        self._to_end: object = None  # of the message that is worked on, once it was cancelled

    def begin(self) -> None:
        """A message begins: what was meant for the one before is forgotten. Outside of a COPY the account of memory
        begins anew."""
        self._cancelled = self._to_end = None
        if self._copy.running is None:
            self._connection.account.begin()

    async def run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Calls a function that may block, in a worker thread. Raises 57014 when it was cancelled."""
        self.is_running = True
        self._cancel_again()  # a cancel may have come before there was a thread to stop
        try:
            call = partial(self.calls.within, function, *arguments)
            return await self._server.loop.run_in_executor(self._server.workers, call)
        except SqlError as error:
            if error.sqlstate == "57014":
                self.end_cancelled()
            raise
        finally:
            self.is_running = False

    async def portion(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """``run`` of what a statement does again and again: it ends here if it was cancelled as the last one ended, or
        since."""
        self.end_cancelled()
        return await self.run(function, *arguments)

    # -- cancelling --------------------------------------------------------------------------------------------

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
        """Whether what the session does now is to stop."""
        return self._cancelled is not None

    def cancel(self, error: SqlError) -> None:
        """Stops what the session does now, if it does anything; the message ends with the error."""
        if self._copy.running is not None:
            self._copy.running.cancel(error)
        elif self.is_running:
            self._cancelled = error
            self._cancel_again()
        elif self._connection.is_busy:  # between two portions
            self._cancelled = error
            self._connection.stop_draining()
        if self._connection.is_busy:
            self._to_end = told = object()
            self._server.loop.call_later(_HEARS, self._leave_behind, told, error.message)

    def _leave_behind(self, told: object, reason: str, waited: float = _HEARS) -> None:
        """What was cancelled waits for a storage that does not answer, as nothing ends, or computes what hears nothing:
        its client need not wait. The session ends when its thread does."""
        connection = self._connection
        if self._to_end is not told or not connection.is_busy or connection.is_lost:
            return
        if self._db.database.core.shared.pulse.is_silent:
            detail = "The storage does not answer: it is not known whether the statement took effect."
        elif waited >= _STOPS:
            detail = "The statement does not stop, so the session ends: it is not known whether it took effect."
            logger.warning("session ends pid=%d: its cancelled statement does not stop", self._db.owner.pid)
        else:
            self._server.loop.call_later(_HEARS, self._leave_behind, told, reason, waited + _HEARS)
            return
        connection.end(SqlError("57014", reason, detail))

    def _cancel_again(self) -> None:
        if self.is_running and self._cancelled is not None:
            self._db.cancel()
            self.interrupt()
            self._server.loop.call_later(_CANCEL_AGAIN, self._cancel_again)

    def interrupt(self) -> None:
        """Ends what the session's threads compute."""
        self.calls.interrupt()
        self._db.database.core.engine.interrupt(self.calls)

    # -- statement_timeout -------------------------------------------------------------------------------------

    def start_timer(self) -> Callable[[], None]:
        """Cancels what runs when it takes longer than statement_timeout; returns what takes that back."""
        seconds = self._settings.seconds("statement_timeout")
        if not seconds:
            return _nothing
        return self._server.loop.call_later(seconds, self.cancel, SqlError("57014", _TIMEOUT)).cancel

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


def _nothing() -> None:
    """No timer runs."""
