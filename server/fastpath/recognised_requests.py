"""Express answers: a request like one before it, recognised by its bytes and answered without taking it apart.

Owns: what one session has learned of its client's requests. A client that reads sends the same few messages again
and again in one piece: a Query, or Bind (with Parse before it or not), perhaps Describe, Execute and Sync. When the
ordinary path has answered such a piece without a thread, the next one is answered from here:

- ``Known``: by the bytes of the whole request, as long as the answer's stamp holds;
- ``Framed``: by the bytes around its parameters' values, which go to a point read's index, are part of a cached
  answer's key, or are a stream's next row or change a table's.

What is not exactly so goes the ordinary way, which is always right. ``server.net.connection`` asks only while the
session is at rest: no transaction, no portal, nothing queued, no setting to report. What may change without a message
of this client (rows and catalog) is checked at each answer, and so is the statement, which another message may have
replaced. Knows nothing of sockets or of running.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.rows.point_reads import PointReader
from planner.algebra.nodes import Value
from planner.statements.statement import Delete, Insert, Update
from protocol.batch import Batch, Frame, batch_of, frame_of, messages_of
from protocol.encoder import BIND_COMPLETE, NO_DATA, PARSE_COMPLETE, READY_FOR_QUERY
from protocol.messages import Bind, Query
from protocol.values.registry import value_decoder
from server.plans.answer_cache import Answered, Stamp
from server.plans.planning import Plan
from server.plans.point_reads import Rows
from server.plans.rows import column_formats
from server.session.prepared import Prepared, outputs_of

if TYPE_CHECKING:
    from server.session.session import Pipelines, Session
    from server.settings.settings import Settings

#: A session's memory for what it has learned; beyond it all is forgotten.
_MEMORY: Final = 256 << 10
#: What one entry weighs beside its bytes.
_OVERHEAD: Final = 512
#: Requests and answers that are larger cost more elsewhere.
_LARGEST: Final = 32 << 10
#: Different lengths of heads: each costs a look-up.
_HEADS: Final = 8
#: After so many requests of which nothing could be learned, no other is tried.
_PATIENCE: Final = 64
_READY: Final = READY_FOR_QUERY["I"]


#: Makes a value of what Bind has.
Decode = Callable[[bytes], Value]


class Used(Struct, frozen=True):
    """The statement that a request runs; with ``parses`` the request makes the unnamed one what it is."""

    name: str
    prepared: Prepared
    plan: Plan
    parses: bool

    def holds(self, statements: dict[str, Prepared]) -> bool:
        """Whether the request means that statement with that plan, which is one for the present catalog."""
        known = self.prepared if self.parses else statements.get(self.name)
        if known is None or known.plan is not self.plan:
            return False
        if self.parses:
            statements[""] = known
        return True


class Known(Struct, frozen=True):
    """The whole answer to a request."""

    data: bytes
    stamp: Stamp
    used: Used | None


class PointRead(Struct, frozen=True):
    """Answers values by a view's key index."""

    reader: PointReader
    rows: Rows
    decoders: tuple[Decode, ...]

    def answer(self, fields: tuple[bytes, ...]) -> bytes | None:
        """Row and CommandComplete, if the index is fresh and the fields are values."""
        try:
            row = self.reader.peek(_values(self.decoders, fields))
        except SqlError:
            return None
        return None if row is None else self.rows.answer(row)


class CachedRead(Struct, frozen=True):
    """Answers values that were asked for before."""

    session: Session
    plan: Plan
    bind: Bind

    def answer(self, fields: tuple[bytes, ...]) -> bytes | None:
        """Rows and CommandComplete, if they are known and still hold."""
        session = self.session
        answer = session.server.results.get(
            answer_key(session.settings, self.plan, self.bind, fields), session.db.database
        )
        return None if answer is None else answer.data


@dataclass(slots=True)
class RowChange:
    """Takes values as a row of a stream, or as a change of a table's row. ``answered`` is the whole answer once that is
    durable."""

    session: Session
    statement: Insert | Update | Delete
    decoders: tuple[Decode, ...]
    before: bytes
    answered: bytes
    #: Of each row: what it is answered with.
    done: Callable[[SqlError | None], None] = field(init=False)

    def __post_init__(self) -> None:
        self.done = self._done

    def answer(self, fields: tuple[bytes, ...]) -> bytes | None:
        """Nothing when the row was taken: the connection is held until the row is durable. None when it was not."""
        session = self.session
        try:
            values = _values(self.decoders, fields)
            session.connection.hold()
            if self._takes(values):
                return b""
        except SqlError:  # the ordinary way says what is wrong
            pass
        session.connection.release()
        return None

    def _takes(self, values: tuple[Value, ...]) -> bool:
        statement = self.statement
        if isinstance(statement, Insert) and isinstance(statement.target, Stream):
            return self.session.db.at_once.append(statement, [values], self.done)
        return self.session.db.at_once.change(statement, values, self.done)

    def _done(self, error: SqlError | None) -> None:
        connection = self.session.connection
        if error is None:
            connection.answer(self.answered, self.session.express.answer)
            return
        connection.send(self.before)
        self.session.failed(error)
        connection.resume()


class Framed(Struct, frozen=True):
    """What answers requests of a frame; ``before`` is the answer's beginning."""

    used: Used
    frame: Frame
    use: PointRead | CachedRead | RowChange
    before: bytes


class Express:
    """What one session has learned. On the event loop's thread."""

    def __init__(self, session: Session, series: Pipelines) -> None:
        self._session = session
        self.series = series
        self._database = session.db.database
        self._statements = session.statements
        self._settings = session.settings.key
        self._answered: list[Answered] = []
        self.forget()

    def forget(self) -> None:
        """Starts anew."""
        self._known: dict[bytes, Known] = {}
        self._framed: dict[bytes, Framed] = {}
        self._heads: tuple[int, ...] = ()
        self.size = 0  # about how many bytes it takes
        self._failures = 0

    # -- answering -----------------------------------------------------------------------------------------------

    def answer(self, request: bytes) -> bytes | None:
        """The whole answer, ReadyForQuery included; nothing if it follows, by the connection's ``answer``.

        None for a request that must go the ordinary way.
        """
        known = self._known.get(request)
        if known is not None:
            if known.stamp.holds(self._database) and (known.used is None or known.used.holds(self._statements)):
                return known.data
            del self._known[request]
            return None
        for start in self._heads:
            framed = self._framed.get(request[:start])
            if framed is not None and (fields := framed.frame.fields(request, start)) is not None:
                return self._answer(framed, fields)
        return self.series.answer(request)

    def _answer(self, framed: Framed, fields: tuple[bytes, ...]) -> bytes | None:
        if framed.used.plan.catalog is not self._database.core.catalog:
            self.forget()
            return None
        if not framed.used.holds(self._statements):
            return None
        data = framed.use.answer(fields)
        return framed.before + data + _READY if data else data

    # -- learning ------------------------------------------------------------------------------------------------

    def note(self, answered: Answered) -> None:
        """The ordinary path has answered a statement without a thread."""
        if self.is_alone:  # of more nothing is learned, and a client that never pauses sends them without end
            self._answered.append(answered)

    @property
    def is_alone(self) -> bool:
        """Whether no more than one statement was noted since the session was at rest."""
        return len(self._answered) < 2

    def rest(self, request: bytes | None, output: bytes) -> None:
        """The session is at rest. ``request`` is what it got since it last was, in one piece, and ``output`` its
        answer."""
        if self._session.settings.key is not self._settings:
            self._settings = self._session.settings.key
            self.forget()
        if not self._answered:
            return
        answered, self._answered = self._answered, []
        if request is None or len(answered) > 1 or len(request) + len(output) > _LARGEST or self._failures > _PATIENCE:
            return
        if self.size > _MEMORY:
            self.forget()
        if self._learn(answered[0], request, output):
            self.size += len(request) + len(output) + _OVERHEAD
        else:
            self._failures += 1

    def _learn(self, known: Answered, request: bytes, output: bytes) -> bool:
        """Whether something was learned."""
        messages = messages_of(request)
        if messages is None:
            return False
        if known.plan is not None:
            batch = batch_of(messages)
            return batch is not None and self._learn_batch(known, known.plan, batch, request, output)
        if known.stamp is None or [type(each) for each in messages] != [Query] or output != known.data + _READY:
            return False
        self._known[request] = Known(output, known.stamp, None)
        return True

    def _learn_batch(self, known: Answered, plan: Plan, batch: Batch, request: bytes, output: bytes) -> bool:
        bind = batch.bind
        prepared = self._statements.get(bind.statement)
        before = PARSE_COMPLETE + BIND_COMPLETE if batch.parses else BIND_COMPLETE
        if batch.describes:
            outputs = outputs_of(self._session, plan.statement)
            described = self._session.server.descriptions.of
            before += NO_DATA if outputs is None else described(outputs, bind.result_formats)
        if prepared is None or prepared.plan is not plan or output != before + known.data + _READY:
            return False
        used = Used(bind.statement, prepared, plan, batch.parses)
        if not bind.parameters and known.stamp is not None:
            self._known[request] = Known(output, known.stamp, used)
            return True
        found = frame_of(request, batch)
        if found is None:
            return False
        head, frame = found
        if len(head) not in self._heads:
            if len(self._heads) == _HEADS:
                return False
            self._heads = (*self._heads, len(head))
        self._framed[head] = Framed(used, frame, self._use(known, plan, bind, before, output), before)
        return True

    def _use(
        self, known: Answered, plan: Plan, bind: Bind, before: bytes, output: bytes
    ) -> PointRead | CachedRead | RowChange:
        """What does with other values what the ordinary path did."""
        if not isinstance(plan.statement, Insert | Update | Delete):
            return read_of(self._session, known, plan, bind)
        decoders = _decoders(self._session.settings, plan, bind)
        return RowChange(self._session, plan.statement, decoders, before, output)


def read_of(session: Session, known: Answered, plan: Plan, bind: Bind) -> PointRead | CachedRead:
    """What reads with other values as the ordinary path has read."""
    if known.stamp is not None:
        return CachedRead(session, plan, bind)
    points = session.server.points
    reader = points.known(plan)
    assert reader is not None
    rows = points.rows(reader, bind.result_formats, session.settings.style)
    return PointRead(reader, rows, _decoders(session.settings, plan, bind))


def answer_key(settings: Settings, plan: Plan, bind: Bind, fields: Iterable[bytes | None]) -> Hashable:
    """What the answer to a query is kept by: its plan, and what Bind says with these values."""
    return plan.serial, (*fields, bind.parameter_formats, bind.result_formats), settings.key


def _decoders(settings: Settings, plan: Plan, bind: Bind) -> tuple[Decode, ...]:
    formats, time_zone = column_formats(bind.parameter_formats, len(plan.types)), settings.style
    return tuple(value_decoder(kind, form, time_zone) for kind, form in zip(plan.given, formats, strict=True))


def _values(decoders: tuple[Decode, ...], fields: tuple[bytes, ...]) -> tuple[Value, ...]:
    """The values of fields. Raises SqlError for one that is none."""
    if len(fields) == 1:  # a comprehension would cost as much as all else here
        return (decoders[0](fields[0]),)
    return tuple([decode(data) for decode, data in zip(decoders, fields, strict=True)])
