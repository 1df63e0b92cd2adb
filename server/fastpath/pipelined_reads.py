"""Pipelined reads: parts of batches that have come together with one like them, answered without being taken apart.

Owns: what a session's pipelines repeat. When the ordinary path has answered an Execute without a thread, what has come
behind it is often more of the same: Bind (with Parse before it or not), perhaps Describe, and Execute, within one batch
or each after the Sync of the one before. They are answered here one after the other, as far as

- each is known by the bytes around its parameters' values (``protocol.batch``), and its statement still means what it
  meant;
- a point read's index or the kept answers have its rows (``server.fastpath.recognised_requests``);
- another one follows, or the batch's end outside of a transaction block: either makes the unnamed portal that the
  ordinary path would have made a thing of the past.

From the first that is not so on the ordinary path goes on: it answers and raises whatever there is to say, and begins
the next series. Knows nothing of sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from protocol.batch import DESCRIBE_PORTAL, EXECUTE, SYNC, Part, parse_of
from protocol.encoder import BIND_COMPLETE, PARSE_COMPLETE, READY_FOR_QUERY
from server.fastpath.recognised_requests import CachedRead, PointRead, Used, read_of
from server.plans.answer_cache import Answered
from server.plans.planning import Plan

if TYPE_CHECKING:
    from server.session.portals import Portal
    from server.session.prepared import Prepared
    from server.session.session import Session

#: A session's memory for kinds of parts; beyond it all are forgotten.
_MEMORY: Final = 256 << 10
#: What one weighs beside the bytes by which it is known, and the longest of these.
_OVERHEAD: Final = 1 << 10
_LONGEST: Final = 4 << 10
#: Different lengths of heads: each costs a look-up.
_SIZES: Final = 8
#: Bytes of answers after which what is queued may be sent.
_MOST: Final = 256 << 10
#: The shortest part: Bind of two empty names and no values, and Execute.
_LEAST: Final = 5 + 2 + 3 * 2 + len(EXECUTE)
_READY: Final = READY_FOR_QUERY["I"]
_DESCRIBED: Final = DESCRIBE_PORTAL + EXECUTE


class Kind(Struct, frozen=True):
    """What answers the parts of one kind; ``described`` is what answers Bind and Describe."""

    part: Part
    used: Used
    use: PointRead | CachedRead
    described: bytes

    def is_of(self, part: Part, plan: Plan) -> bool:
        """Whether it answers parts of this plan in this form."""
        return self.used.plan is plan is self.used.prepared.plan and self.part == part


#: A part that has come: its kind and values, what its answer begins with, and where it ends.
Found = tuple[Kind, tuple[bytes, ...], bytes, int]


class Series:
    """What one session's pipelines repeat. On the event loop's thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._forget()

    def _forget(self) -> None:
        self._settings = self._session.settings.key
        self._kinds: dict[bytes, Kind] = {}  # by Parse, if it is a part of it, and the head of Bind
        self._sizes: tuple[int, ...] = ()  # of these heads
        self.size = 0  # about how many bytes it takes

    def follow(self, portal: Portal, known: Answered) -> None:
        """Answers what has come behind the Execute of a portal that ``known`` has answered."""
        session = self._session
        data, start = session.connection.ahead()
        is_last = len(data) - start < _LEAST
        if session.connection.transcoder is not None or portal.name or (is_last and session.express.is_alone):
            return
        self._learn(portal, known)
        if is_last:
            return
        pieces, position = self._answers(data, start, session.transaction.is_idle, session.is_at_ease)
        if pieces:
            session.connection.skip(position)
            session.connection.send(b"".join(pieces))
            if session.transaction.is_idle:
                session.express.note(known)  # which is not the whole answer to a request

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request of a session at rest that is nothing but known parts and the end of their batches."""
        if not self._kinds or not request.endswith(SYNC) or self._session.settings.key is not self._settings:
            return None
        statements = self._session.statements
        unnamed = statements.get("")
        pieces, position = self._answers(request, 0, True, True)
        if position + len(SYNC) == len(request):
            return b"".join((*pieces, _READY))
        if unnamed is not None:  # the ordinary way begins where the request does
            statements[""] = unnamed
        return None

    # -- answering -----------------------------------------------------------------------------------------------

    def _answers(self, data: bytes, position: int, is_idle: bool, at_ease: bool) -> tuple[list[bytes], int]:
        """Those to the first parts, and where these end."""
        session, database = self._session, self._session.db.database
        statements, ends_portals = session.statements, session.db.status == "I"
        pieces: list[bytes] = []
        if session.db.catalog is not database.core.catalog:
            return pieces, position
        size = 0
        following = self._find(data, position, at_ease)
        while following is not None and size < _MOST:
            kind, fields, before, end = following
            following = self._find(data, end, at_ease)
            if following is None and not (ends_portals and data.startswith(SYNC, end)):
                break
            if kind.used.plan.catalog is not database.core.catalog or not kind.used.holds(statements):
                break
            answer = kind.use.answer(fields) if is_idle or type(kind.use) is PointRead else None
            if answer is None:
                break
            pieces += (before, answer)
            size += len(before) + len(answer)
            position = end
        return pieces, position

    def _find(self, data: bytes, start: int, at_ease: bool) -> Found | None:
        """The part of a known kind that begins there, behind the end of a batch or not."""
        before = parse = b""
        if not data.startswith(b"B", start):
            if at_ease and data.startswith(SYNC, start):
                before, start = _READY, start + len(SYNC)
            begin = _begin_of_bind(data, start)
            if begin > start:
                before, parse, start = before + PARSE_COMPLETE, data[start:begin], begin
        for size in self._sizes:
            kind = self._kinds.get(parse + data[start + 5 : start + 5 + size])
            if kind is not None:
                break
        else:
            return None
        found = kind.part.fields(data, start)
        if found is None:
            return None
        fields, end = found
        if data.startswith(EXECUTE, end):
            return kind, fields, before + BIND_COMPLETE, end + len(EXECUTE)
        if data.startswith(_DESCRIBED, end):
            return kind, fields, before + kind.described, end + len(_DESCRIBED)
        return None

    # -- learning ------------------------------------------------------------------------------------------------

    def _learn(self, portal: Portal, known: Answered) -> None:
        """What comes may run the portal's statement again, which is parsed again or not."""
        session, plan, bind = self._session, portal.plan, portal.bind
        if session.settings.key is not self._settings or self.size > _MEMORY or len(self._sizes) > _SIZES:
            self._forget()
        prepared = session.statements.get(bind.statement)
        if prepared is None or plan is None or prepared.plan is not plan:
            return
        part = Part.of(bind)
        parses = [b""]
        if not bind.statement and prepared.oids is not None:
            parses.append(parse_of(prepared.text, prepared.oids))
        for parse in parses:
            key = parse + part.head
            kind = self._kinds.get(key)
            if len(key) > _LONGEST or (kind is not None and kind.is_of(part, plan)):
                continue
            if self._is_meant(prepared, plan, bool(parse)):
                used = Used(bind.statement, prepared, plan, bool(parse))
                head = session.server.descriptions.of(portal.outputs or (), bind.result_formats)
                self._kinds[key] = Kind(part, used, read_of(session, known, plan, bind), BIND_COMPLETE + head)
                self.size += len(key) + _OVERHEAD
        if len(part.head) not in self._sizes:
            self._sizes = (*self._sizes, len(part.head))

    def _is_meant(self, prepared: Prepared, plan: Plan, parses: bool) -> bool:
        """Whether the ordinary way would take this plan now: settings may have changed since the portal was bound."""
        session = self._session
        if not parses:
            return plan.suits(session.db.catalog, session.settings)
        assert prepared.raw is not None
        return session.server.plans.planned(prepared.raw, prepared.declared, session.surroundings) is plan


def _begin_of_bind(data: bytes, start: int) -> int:
    """Where a part's Bind begins: behind its Parse, if it has one."""
    return start + 1 + int.from_bytes(data[start + 1 : start + 5]) if data.startswith(b"P", start) else start
