"""COPY with the client: a pipeline from the socket to the executor, and rows back out.

Owns: the stages of COPY IN and their bounds. Bytes are kept on the loop's thread until there are enough of them; other
threads cut them into blocks of whole rows; blocks are parsed, and encoded for the log, on a few threads at once (Arrow
releases the GIL); one thread per COPY appends the batches in order. When ``BLOCKS`` blocks are on their way the client
has to wait: nothing is read from its socket. The first error ends the COPY at once; data that still comes is dropped by
the connection's state machine. Data that makes no whole block before its end takes none of these stages: one call of a
worker thread parses and commits it.
Knows nothing of formats (``protocol.copy``) or of where rows go (the executor's sink).
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import asdict

from catalog.objects import Stream
from catalog.values.encodings import PLAIN, UTF8
from catalog.values.errors import SqlError, unsupported
from executor.sql.copy_from import CopySink, Prepared
from executor.sql.replanning import Planned
from executor.transactions.result import Result
from planner.cancellation import cancelled, leave
from planner.statements.statement import CopyIn as CopyInStatement
from planner.statements.statement import CopyOptions, CopyOut, Query
from protocol import encoder
from protocol import messages as m
from protocol.copy import BinaryBlock, Block, CopyFormat, CopyReader, CopyWriter
from server.plans.planning import Plan
from server.query import execution
from server.query.copy.names import NamedReader, are_named, naming, read_as, written_as
from server.query.copy.server_files import open_to_read, open_to_write

if TYPE_CHECKING:
    from server.session.copy_state import Copying
    from server.session.session import Session
    from server.settings.settings import Settings

#: Blocks between the splitter and the appender: some megabytes each.
BLOCKS: Final = 6

#: What is to be done when a COPY of the simple protocol has ended well.
Then = Callable[[], Awaitable[None]]
Reader = CopyReader | NamedReader


class CopyIn:
    """One COPY FROM STDIN on its way. Methods run on the loop's thread, but for ``_append`` and ``_take_all``."""

    def __init__(self, session: Session, reader: Reader, sink: CopySink, then: Then | None) -> None:
        self.then = then
        self._session = session
        self._reader = reader
        self._sink = sink
        self._blocks: queue.SimpleQueue[Future[Prepared] | None] = queue.SimpleQueue()
        self._under_way = 0
        self._received = 0
        self._room: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._abandoned = False
        self._appender: asyncio.Future[None] | None = None  # since the first block
        self._stop_timer = session.work.start_timer()

    def feed(self, data: bytes) -> Awaitable[None] | None:
        """Takes data; what is returned, if anything, must be awaited before more comes. Raises what went wrong."""
        self._raise_error()
        self._received += len(data)
        if self._reader.is_due(len(data)):
            return self._split(self._reader.split, data)
        self._reader.split(data)
        return None

    async def _split(self, split: Callable[..., Sequence[Block | BinaryBlock]], *data: bytes) -> None:
        """Cuts what is there into blocks, off the loop, and hands them on; waits while there are many."""
        session = self._session
        call = partial(session.work.calls.within, leave, split, *data)
        try:
            blocks = await session.server.loop.run_in_executor(session.server.splitters, call)
        finally:
            self._raise_error()  # why it was cancelled meanwhile
        for block in blocks:
            self._under_way += 1
            self._submit(block)
        await self._wait_room()

    @property
    def held_bytes(self) -> int:
        """About how many bytes wait for the end: all of a table's, and a stream's first block."""
        is_held = self._appender is None or not isinstance(self._sink.statement.target, Stream)
        return self._received if is_held else 0

    def _submit(self, block: Block | BinaryBlock) -> None:
        server = self._session.server
        if self._appender is None:
            self._appender = server.loop.run_in_executor(server.workers, self._append)
        self._blocks.put(
            server.parsers.submit(self._session.work.calls.within, _prepared, self._reader, self._sink, block)
        )

    async def finish(self) -> int:
        """The data is complete: number of rows. Raises what went wrong."""
        try:
            return await self._finish()
        except SqlError:
            self._raise_error()  # why it was cancelled
            raise
        finally:
            self._stop_timer()

    async def _finish(self) -> int:
        if self._appender is None:
            return await self._session.work.run(self._take_all)
        await self._split(self._reader.rest)
        self._blocks.put(None)
        await self._appender
        self._raise_error()
        self._session.copy.end()  # from here on the sink looks after itself
        return await self._session.work.run(self._sink.finish)

    def cancel(self, error: SqlError) -> None:
        """Ends it on request."""
        self._abandoned = True
        self._sink.cancel()
        self._session.work.interrupt()
        self._broken(error)

    async def abort(self) -> None:
        """Ends the COPY with nothing of it visible."""
        self._stop_timer()
        self._abandoned = True
        self._sink.cancel()
        self._session.work.interrupt()
        if self._appender is not None:
            self._blocks.put(None)
            await self._appender
        await self._session.work.run(self._sink.abort)

    def _take_all(self) -> int:
        """All of a COPY that is less than a block; in a worker thread, which ``finish`` waits for."""
        blocks = leave(self._reader.rest)
        for block in blocks:
            self._sink.write(self._session.work.calls.within(_prepared, self._reader, self._sink, block))
        self._raise_error()
        self._session.copy.end()  # from here on the sink looks after itself
        with _locating(self._reader, self._sink, blocks):
            return self._sink.finish()

    async def _wait_room(self) -> None:
        while self._under_way > BLOCKS and self._error is None:
            self._room = self._session.server.loop.create_future()
            await self._room
        self._raise_error()

    def _append(self) -> None:
        """Appends parsed blocks in order; in a thread of its own."""
        completions = self._session.server.completions
        while (block := self._blocks.get()) is not None:
            if self._abandoned:
                block.cancel()
                continue
            try:
                self._sink.write(block.result())
            except BaseException as error:
                self._abandoned = True
                completions.add(partial(self._broken, error))
            else:
                completions.add(self._taken)

    def _taken(self) -> None:
        self._under_way -= 1
        self._wake()

    def _broken(self, error: BaseException) -> None:
        """Tells the client at once, unless it is being waited for something that will."""
        self._error = error
        self._wake()
        if self._session.copy.running is self and isinstance(error, SqlError):
            self._session.connection.interrupt(error)

    def _wake(self) -> None:
        waiting, self._room = self._room, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _prepared(reader: Reader, sink: CopySink, block: Block | BinaryBlock) -> Prepared:
    """What can be done of a block on any thread, within the session's ``calls``: parsed, completed and, if it is for
    the log already, encoded. Raises 57014 where it is cancelled."""
    if sink.is_cancelled:
        raise cancelled()
    batch = leave(reader.parse, block)
    with _locating(reader, sink, (block,)):
        return sink.prepare(batch)


@contextlib.contextmanager
def _locating(reader: Reader, sink: CopySink, blocks: Sequence[Block | BinaryBlock]) -> Iterator[None]:
    """Errors about a row of the only block name its line; of several blocks nothing is kept to find it in."""
    try:
        yield
    except SqlError as error:
        if sink.keeps_rows and len(blocks) == 1:
            reader.locate(error, blocks[0])
        raise


def is_copy(plan: Plan) -> bool:
    """Whether the statement is a COPY, from or to the client or a file of the server."""
    return isinstance(plan.statement, CopyInStatement | CopyOut)


async def begin(session: Session, plan: Plan, then: Then | None) -> None:
    """Starts COPY FROM STDIN, or does all of COPY FROM a file; then goes on with ``then``."""
    session.starts_statement(plan)
    planned = execution.planned(session, plan)
    statement = planned.statement
    assert isinstance(statement, CopyInStatement)
    if statement.path is not None:
        rows = await session.work.run(_copy_file, session, planned, statement.path)
        session.connection.send(encoder.command_complete(f"COPY {rows}"))
        if then is not None:
            await then()
        return
    is_current = planned.catalog is session.db.catalog
    if isinstance(statement.target, Stream) and not statement.defaults and is_current:  # no waiting, no computing
        sink, reader = _opened(session, planned)
    else:
        sink, reader = await session.work.run(_opened, session, planned)
    session.copy.begin(CopyIn(session, reader, sink, then))
    session.connection.machine.begin_copy_in()
    binary = statement.options.format == "binary"
    session.connection.send(encoder.copy_in_response(len(sink.statement.columns), binary))
    session.connection.flush()


def _opened(session: Session, planned: Planned) -> tuple[CopySink, Reader]:
    """Where a COPY's rows go, once it may begin, and how its data is read for what the statement means by then."""
    sink = session.db.copy_in(planned)
    try:
        return sink, _reader(session, sink.statement)
    except BaseException:
        sink.abort()
        raise


def _reader(session: Session, statement: CopyInStatement) -> Reader:
    columns = [statement.target.columns[index] for index in statement.columns]
    types, names = tuple(item.type for item in columns), [item.name for item in columns]
    is_named = statement.options.format != "binary" and are_named(types)
    time_zone, read = session.settings.style, read_as(types) if is_named else types
    scaled = tuple(place for place, item in enumerate(columns) if item.keeps_scale)
    form = _format(session.settings, statement.options)
    plain = CopyReader(read, names, form, statement.target.name, time_zone, scaled=scaled)
    if not is_named:
        return plain
    return NamedReader(plain, types, session.surroundings.context())


def _format(settings: Settings, options: CopyOptions) -> CopyFormat:
    """What the data look like, in the client's encoding where no other was named. Raises 0A000."""
    given = asdict(options)
    if not options.encoding:
        name = settings.encoding
        if name not in PLAIN and options.format != "binary":
            raise unsupported(f"COPY with client_encoding {name}", "Convert the data to UTF8.")
        given |= {"encoding": name, "codec": PLAIN.get(name, PLAIN[UTF8])}
    return CopyFormat(**given)


def data(session: Session, message: m.CopyData) -> Awaitable[None] | None:
    """CopyData."""
    return session.copy.running.feed(message.data) if session.copy.running is not None else None


def done(session: Session, message: m.CopyDone) -> Awaitable[None] | None:
    """CopyDone."""
    return _done(session, session.copy.running) if session.copy.running is not None else None


async def _done(session: Session, copy: Copying) -> None:
    rows = await copy.finish()
    session.connection.send(encoder.command_complete(f"COPY {rows}"))
    if copy.then is not None:
        await copy.then()


def fail(session: Session, message: m.CopyFail) -> None:
    """CopyFail."""
    if session.copy.running is not None:
        raise SqlError("57014", f"COPY from stdin failed: {message.message}")


def _copy_file(session: Session, planned: Planned, path: str) -> int:
    """COPY FROM a file of the server: the same stages, driven by the reading. In a worker thread."""
    parsers, waiting = session.server.parsers, deque[Future[Prepared]]()
    within = session.work.calls.within
    with open_to_read(path, session.work.is_cancelled) as file:
        sink, reader = _opened(session, planned)
        try:
            for portion in file.portions():
                blocks = leave(reader.split, portion)
                waiting.extend(parsers.submit(within, _prepared, reader, sink, block) for block in blocks)
                while len(waiting) > BLOCKS:
                    sink.write(waiting.popleft().result())
            blocks = leave(reader.rest)
            waiting.extend(parsers.submit(within, _prepared, reader, sink, block) for block in blocks)
            while waiting:
                sink.write(waiting.popleft().result())
        except BaseException:
            for block in waiting:
                block.cancel()
            sink.abort()
            raise
        return sink.finish()


async def send_out(session: Session, plan: Plan) -> None:
    """COPY TO STDOUT, or to a file of the server."""
    session.starts_statement(plan)
    planned = execution.planned(session, plan)
    statement = planned.statement
    assert isinstance(statement, CopyOut)
    if not isinstance(statement.query, Query):  # what it changes lasts once its rows have arrived
        session.transaction.begin_implicit()
    if statement.path is not None:
        rows = await session.work.run(_write_file, session, planned, statement)
        session.connection.send(encoder.command_complete(f"COPY {rows}"))
        return
    result = await session.work.run(session.db.execute_planned, planned)
    writer, encode = _writer(session, statement, result)
    binary = statement.options.format == "binary"
    session.connection.send(encoder.copy_out_response(len(result.outputs), binary))
    batches, rows = iter(result.batches or ()), 0

    def take() -> tuple[bytes, int] | None:
        batch = next(batches, None)
        return None if batch is None else (leave(encode, batch), batch.num_rows)

    session.connection.send(writer.header())
    while (portion := await session.work.portion(take)) is not None:
        data, count = portion
        rows += count
        session.connection.send(data)
        await session.connection.drain()
    session.connection.send(writer.trailer() + encoder.COPY_DONE + encoder.command_complete(f"COPY {rows}"))


def _writer(
    session: Session, statement: CopyOut, result: Result
) -> tuple[CopyWriter, Callable[[pa.RecordBatch], bytes]]:
    """What makes a result's rows the bytes of a COPY, framed as messages where they are no file's; and of a batch."""
    types, names = tuple(item.type for item in result.outputs), [item.name for item in result.outputs]
    is_named = statement.options.format != "binary" and are_named(types)
    written, is_framed = written_as(types) if is_named else types, statement.path is None
    writer = CopyWriter(written, names, _format(session.settings, statement.options), session.settings.style, is_framed)
    return writer, naming(writer, types, session.names) if is_named else writer.encode


def _write_file(session: Session, planned: Planned, statement: CopyOut) -> int:
    """COPY TO a file; the number of rows. In a worker thread. Raises 42602, 58P01 and the like, and 53100."""
    path = statement.path
    assert path is not None
    rows = 0
    with open_to_write(path, session.work.is_cancelled) as file:
        result = session.db.execute_planned(planned)
        writer, encode = _writer(session, statement, result)
        file.write(writer.header())
        for batch in result.batches or ():
            file.write(leave(encode, batch))
            rows += batch.num_rows
        file.write(writer.trailer())
    return rows
