"""Which message is legal when, as tables: the connection's state machine.

Owns: the phase, the skipping of messages until Sync after an error in the extended protocol, and the transaction status
that ReadyForQuery reports. Knows nothing of what a message does.

::

    STARTUP --StartupMessage, PeerRequest--> AUTHENTICATING --authenticated()--> READY
    READY --Parse, Bind, ...--> EXTENDED --Sync--> READY
    EXTENDED --fail()--> SKIPPING --Sync--> READY
    READY, EXTENDED --begin_copy_in()--> COPY_IN, COPY_IN_EXTENDED --CopyDone, CopyFail--> READY, EXTENDED
    any --Terminate, CancelRequest--> CLOSED

https://www.postgresql.org/docs/15/protocol-flow.html
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal

from catalog.values.errors import SqlError
from protocol import messages as m


class Phase(Enum):
    """The state of a connection between two messages."""

    STARTUP = "startup"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    EXTENDED = "extended"
    SKIPPING = "skipping"
    COPY_IN = "copy in"
    COPY_IN_EXTENDED = "copy in, extended"
    CLOSED = "closed"


_Moves = dict[type[m.FrontendMessage], Phase]

_BATCH: Final[_Moves] = dict.fromkeys((m.Parse, m.Bind, m.Describe, m.Execute, m.Close, m.Flush), Phase.EXTENDED)
_IDLE: Final[_Moves] = {
    **_BATCH,
    m.Query: Phase.READY,
    m.FunctionCall: Phase.READY,
    m.Sync: Phase.READY,
    m.Terminate: Phase.CLOSED,
}

#: The legal messages of each phase, and the phase after each.
MOVES: Final[dict[Phase, _Moves]] = {
    Phase.STARTUP: {
        m.StartupMessage: Phase.AUTHENTICATING,
        m.PeerRequest: Phase.AUTHENTICATING,
        m.SSLRequest: Phase.STARTUP,
        m.DirectTls: Phase.STARTUP,
        m.GSSENCRequest: Phase.STARTUP,
        m.CancelRequest: Phase.CLOSED,
    },
    Phase.AUTHENTICATING: {m.PasswordMessage: Phase.AUTHENTICATING, m.Terminate: Phase.CLOSED},
    # A Flush outside of a batch sends waiting messages and begins no batch.
    Phase.READY: {**_IDLE, m.Flush: Phase.READY},
    Phase.EXTENDED: _IDLE,
    Phase.SKIPPING: {m.Sync: Phase.READY, m.Terminate: Phase.CLOSED},
    Phase.COPY_IN: {
        m.CopyData: Phase.COPY_IN,
        m.CopyDone: Phase.READY,
        m.CopyFail: Phase.READY,
        m.Terminate: Phase.CLOSED,
    },
    Phase.COPY_IN_EXTENDED: {
        m.CopyData: Phase.COPY_IN_EXTENDED,
        m.CopyDone: Phase.EXTENDED,
        m.CopyFail: Phase.EXTENDED,
        m.Terminate: Phase.CLOSED,
    },
    Phase.CLOSED: {},
}

Kinds = frozenset[type[m.FrontendMessage]]
_LATE_COPY: Final[Kinds] = frozenset((m.CopyData, m.CopyDone, m.CopyFail))
_UNASKED: Final[Kinds] = frozenset((m.Flush, m.Sync))
_SESSION: Final[Kinds] = frozenset((*_IDLE, *_LATE_COPY))

#: The messages that each phase drops silently. COPY data may still arrive after a COPY has failed.
IGNORED: Final[dict[Phase, Kinds]] = {
    Phase.STARTUP: frozenset(),
    Phase.AUTHENTICATING: frozenset(),
    Phase.READY: _LATE_COPY,
    Phase.EXTENDED: _LATE_COPY,
    Phase.SKIPPING: _SESSION - {m.Sync, m.Terminate},
    Phase.COPY_IN: _UNASKED,
    Phase.COPY_IN_EXTENDED: _UNASKED,
    Phase.CLOSED: frozenset(),
}

_AFTER_ERROR: Final[dict[Phase, Phase]] = {
    Phase.EXTENDED: Phase.SKIPPING,
    Phase.COPY_IN_EXTENDED: Phase.SKIPPING,
    Phase.COPY_IN: Phase.READY,
}

_COPY_PHASE: Final[dict[Phase, Phase]] = {
    Phase.READY: Phase.COPY_IN,
    Phase.EXTENDED: Phase.COPY_IN_EXTENDED,
}


class Machine:
    """One connection's state. ``transaction`` is what ReadyForQuery shows: I, T or E, set by the session."""

    __slots__ = ("_moves", "_phase", "transaction")

    def __init__(self) -> None:
        self._phase = Phase.STARTUP
        self._moves = MOVES[Phase.STARTUP]
        self.transaction: Literal["I", "T", "E"] = "I"

    @property
    def phase(self) -> Phase:
        """The phase after the last accepted message."""
        return self._phase

    def accept(self, message: m.FrontendMessage) -> bool:
        """Moves to the phase after a message. True if the session must act on the message, False if it is dropped.
        Raises 08P01 if the message is illegal.

        A ``Malformed`` message moves like the message that it stands for; its handler raises its error.
        """
        kind = message.kind if type(message) is m.Malformed else type(message)
        after = self._moves.get(kind)
        if after is None:
            return self._refuse(kind)
        if after is not self._phase:
            self._enter(after)
        return True

    def authenticated(self) -> None:
        """The client is authenticated: it may send statements."""
        assert self._phase is Phase.AUTHENTICATING
        self._enter(Phase.READY)

    def begin_copy_in(self) -> None:
        """CopyInResponse was sent: COPY data follows."""
        self._enter(_COPY_PHASE[self._phase])

    def fail(self) -> bool:
        """The request of the accepted message raised an error.

        Returns True if ReadyForQuery is due at once, and False if all messages up to Sync are skipped first.
        """
        after = _AFTER_ERROR.get(self._phase)
        if after is not None:
            self._enter(after)
        return self._phase is Phase.READY

    def close(self) -> None:
        """Ends the connection: no message is accepted any more."""
        self._enter(Phase.CLOSED)

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._moves = MOVES[phase]

    def _refuse(self, kind: type[m.FrontendMessage]) -> bool:
        if kind in IGNORED[self._phase]:
            return False
        if self._phase in (Phase.COPY_IN, Phase.COPY_IN_EXTENDED):
            raise SqlError("08P01", f"unexpected message {kind.__name__} during COPY from stdin")
        raise SqlError("08P01", f"unexpected message {kind.__name__} in phase {self._phase.value}")
