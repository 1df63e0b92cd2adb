"""One client's socket: bytes in, messages to the session in order, bytes out, back-pressure both ways.

Owns: the transport, the decoder, the output buffer, and the rule that one message is worked on at a time. A message
that needs a worker thread makes the connection busy; what arrives meanwhile waits in the decoder, and beyond
``READ_AHEAD`` bytes in the client. Knows nothing of SQL: what messages do is the matter of ``server.session.session``,
and before there is one of ``server.login.startup``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from catalog.os_errors import exhausted
from catalog.values.errors import SqlError
from protocol import encoder
from protocol.batch import SYNC
from protocol.decoder import Decoder
from protocol.machine import Machine, Phase
from protocol.messages import FrontendMessage, Malformed
from server.net.tls import Secured, Tunnel
from server.operations.memory_guard import Account

if TYPE_CHECKING:
    from protocol.values.transcoding import Transcoder
    from server.net.cancel_keys import Backend
    from server.operations.config import Config
    from server.operations.own_paths import OwnPaths

#: What a client is told whose connection the server or another client ends.
SHUTDOWN: Final = SqlError("57P01", "terminating connection due to administrator command")
#: Bytes that may wait for a busy session before the socket is left alone.
READ_AHEAD: Final = 1 << 20
#: Bytes of output that may wait for a slow client before results wait too.
WRITE_BEHIND: Final = 1 << 20
#: Seconds that a client that does not read has to take its last messages.
_LAST: Final = 1.0
#: Messages of one client that are there together, after which others are served.
_IN_A_TURN: Final = 1024
#: Seconds until a session that could not be closed is closed again.
_CLOSE_AGAIN: Final = 0.2

logger = logging.getLogger(__name__)


#: Answers a whole request while the connection is at rest; None for one that must be taken apart. Of no bytes: the
#: connection is held, and ``answer`` is called with what it is to send.
Express = Callable[[bytes], bytes | None]


class Handler(Protocol):
    """The handler of messages: the start-up at first, the session after it."""

    def handle(self, message: FrontendMessage) -> Awaitable[None] | None:
        """Acts on one message; what is returned must end before the next one comes. Raises SqlError."""
        ...

    def failed(self, error: SqlError) -> Awaitable[None] | None:
        """Acts on the error of the message that was handled last."""
        ...

    def rest(self, request: bytes | None, output: bytes) -> Express | None:
        """No message is left, and none begun: what may answer the next bytes at once, if anything.

        ``request`` is what came since the last rest, if it came in one piece, and ``output`` the answer to it.
        """
        ...

    @property
    def backend(self) -> Backend | None:
        """The session; None where there is none, or not yet."""
        ...

    @property
    def is_under_way(self) -> bool:
        """Whether the client has begun something that the end of the server would undo."""
        ...

    def cancel(self) -> None:
        """Stops what runs."""
        ...

    @property
    def held_bytes(self) -> int:
        """Bytes that are known to be held for the client."""
        ...

    def exceed(self) -> None:
        """Ends what uses the most memory with 53200: what runs, or the session."""
        ...

    async def close(self) -> None:
        """The connection is gone."""
        ...


class Met(Protocol):
    """What counts connections."""

    def met(self, connection: Connection) -> None:
        """A client has connected."""
        ...

    def left(self, connection: Connection) -> None:
        """A connection's session has ended."""
        ...


class Host(Protocol):
    """What a connection needs of the server."""

    config: Config
    loop: asyncio.AbstractEventLoop
    own_paths: OwnPaths

    @property
    def clients(self) -> Met:
        """All connections."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]) -> None:
        """Runs a task; ``failed`` is told what it raises."""
        ...


class Connection(asyncio.Protocol):
    """One client. All methods run on the event loop's thread."""

    def __init__(self, server: Host, begin: Callable[[Connection], Handler]) -> None:
        """``begin`` makes the handler of the first messages."""
        self.server = server
        self.machine = Machine()
        self.account = Account()
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._output: list[bytes] = []
        self._queued = 0  # bytes of it
        self._express: Express | None = None  # only while at rest
        self._request: bytes | None = None  # the one piece of bytes since then
        #: Where what is sent and received is encrypted.
        self.tunnel: Tunnel | None = None
        #: Where the client is: host and port.
        self.peer: tuple[str, int] = ("", -1)
        #: The address that the client has connected to; None of a local socket.
        self.own_address: str | None = None
        self._busy = False
        self._closing = False
        self._ahead = 0
        self._reading_paused = False
        self._writable: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None  # what waits for it
        self._idle: asyncio.Future[None] | None = None
        self.handler: Handler = begin(self)

    # -- asyncio's calls ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        transport = cast(asyncio.Transport, transport)  # uvloop's own class, by its interface
        transport.set_write_buffer_limits(high=WRITE_BEHIND)
        self._transport = transport
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if peer is not None:
            self.peer = (peer[0], peer[1])
        if here is not None:
            self.own_address = here[0]
        if self.server.config.log_connections:
            logger.info("connection received host=%s port=%d", *self.peer)
        self.server.clients.met(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came: acts on all whole messages, unless one is being worked on or the client does not read."""
        if self._express is None:
            self._request = None
        else:
            try:
                output = self._express(data)
            except Exception as error:  # the ordinary way tells the client what is wrong
                self._unexpected(error)
                output = None
            if output is not None and self._transport is not None:
                if output:
                    self._transport.write(output)
                return
            self._express, self._request = None, data
        self._decoder.feed(data)
        if not self._busy and self._writable is None:
            self._process()
            return
        self._ahead += len(data)
        if self._ahead > READ_AHEAD and not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: nothing more is worked on until it has caught up."""
        self._express = None
        if self._writable is None:
            self._writable = self.server.loop.create_future()

    def resume_writing(self) -> None:
        """It has caught up."""
        waiting, self._writable = self._writable, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        self.server.loop.call_soon(self._proceed)  # we may be inside of a write

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: what runs for it is cancelled, then the session ends."""
        self._transport = None
        self._closing = True
        self.resume_writing()
        self.handler.cancel()
        self.server.spawn(self._finish(), self._break)

    # -- for handlers ------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Queues bytes; they leave when no message is left to act on, with ``flush`` or with ``drain``."""
        recoder = self._decoder.transcoder
        if recoder is not None:
            data = recoder.answers(data)
        self._output.append(data)
        self._queued += len(data)

    @property
    def transcoder(self) -> Transcoder | None:
        """What stands between UTF8 and the client's encoding; None where that is UTF8."""
        return self._decoder.transcoder

    @transcoder.setter
    def transcoder(self, item: Transcoder | None) -> None:
        self._decoder.transcoder = item

    def authenticated(self) -> None:
        """The client is authenticated."""
        self._decoder.authenticated()
        self.machine.authenticated()

    def encrypt(self, secured: Secured, begun: bytes | None = None) -> None:
        """What is sent and received from now on is TLS's; ``begun``: its first bytes, which came unasked for.

        Raises 08P01 where the client has sent anything behind its request (CVE-2021-23222).
        """
        self.flush()
        transport = self._transport
        if transport is None:
            return
        self.require_nothing_behind("SSL")
        self.tunnel = Tunnel(transport, self, secured, begun is not None)
        self._transport = cast(asyncio.Transport, self.tunnel)
        transport.set_protocol(self.tunnel)
        if begun is not None:
            self.tunnel.data_received(begun)

    def require_nothing_behind(self, request: str) -> None:
        """Nothing may come before the answer to a request for encryption. Raises 08P01."""
        if self._decoder.buffered:
            detail = "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack."
            raise SqlError("08P01", f"received unencrypted data after {request} request", detail)

    def flush(self) -> bytes:
        """Sends what is queued, and returns it."""
        data = self._output[0] if len(self._output) == 1 else b"".join(self._output)
        self._output.clear()
        self._queued = 0
        if data and self._transport is not None:
            self._transport.write(data)
        return data

    async def drain(self) -> None:
        """Sends what is queued and waits until the client has taken most of it, or until ``stop_draining``.

        Raises 08006 when the client is gone.
        """
        self.flush()
        if self._writable is not None:
            self._drained = drained = self.server.loop.create_future()
            self._writable.add_done_callback(lambda _: self.stop_draining())
            await drained
        if self._transport is None:
            raise SqlError("08006", "connection to client lost")

    def stop_draining(self) -> None:
        """Ends the wait for the client: what is sent is cancelled, or the client has read it."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    @property
    def is_lost(self) -> bool:
        """Whether the client is gone."""
        return self._transport is None

    @property
    def is_slow(self) -> bool:
        """Whether the client has not read what was sent to it before."""
        return self._writable is not None

    @property
    def is_busy(self) -> bool:
        """Whether a message is being worked on."""
        return self._busy

    @property
    def at_rest(self) -> bool:
        """Whether the next bytes may be answered at once."""
        return self._express is not None

    @property
    def batch_ends(self) -> bool:
        """Whether a Sync is there as the next message."""
        data, position = self._decoder.ahead()
        return data.startswith(SYNC, position)

    def ahead(self) -> tuple[bytes, int]:
        """The bytes of the messages that are to come, as far as they are there, from a position on."""
        return self._decoder.ahead()

    def skip(self, position: int) -> None:
        """The messages before a position of ``ahead`` have been acted on."""
        self._decoder.skip(position)

    @property
    def held_bytes(self) -> int:
        """Bytes that are known to be held for the client."""
        return self._decoder.size + self.handler.held_bytes

    def exceed(self) -> None:
        """Ends what runs, or the session, with 53200."""
        self.handler.exceed()

    def hold(self) -> None:
        """No message is handled until ``resume``."""
        self._busy = True
        self._express = None

    def release(self) -> None:
        """Takes back ``hold`` while the message is still being acted on."""
        self._busy = False

    def interrupt(self, error: SqlError) -> None:
        """An error that no message caused, while none is worked on."""
        if not self._busy and not self.is_lost:
            self.hold()
            self.server.spawn(self._fail(error), self._break)

    def resume(self) -> None:
        """The message that made the connection busy is done."""
        self._busy = False
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
        self._proceed()

    def answer(self, output: bytes, express: Express) -> None:
        """The whole answer to a request for which the connection was held: it is at rest again, as it was before it,
        unless something came or went meanwhile."""
        transport = self._transport
        if transport is None or self._closing or self._writable is not None or self._decoder.buffered:
            self.send(output)
            self.resume()
            return
        self._busy = False
        transport.write(output)
        if self._writable is None:
            self._express = express

    def end(self, error: SqlError | None = None) -> None:
        """Closes the connection, with a FATAL error if there is one, once what is queued has been sent."""
        if error is not None:
            self.send(encoder.error_response(self.server.own_paths.hidden(error), "FATAL"))
        self.flush()
        self._closing = True
        self._express = None
        self.machine.close()
        if self._transport is not None:
            self._transport.close()
        if self._writable is not None:
            self.server.loop.call_later(_LAST, self.abort)

    def abort(self) -> None:
        """Drops the connection with whatever is queued."""
        if self._transport is not None:
            self._transport.abort()

    # -- inside ------------------------------------------------------------------------------------------------

    def _proceed(self) -> None:
        """Goes on after a time in which nothing was worked on, if it is over."""
        if self._busy or self._writable is not None:
            return
        self._ahead = 0
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        self._process()

    def _process(self) -> None:
        """Acts on all whole messages. What fails outside of a message ends this connection and no other."""
        try:
            self._act()
        except Exception as error:
            self._break(error)

    def _act(self) -> None:
        for _ in range(_IN_A_TURN):
            if self._busy or self._closing or self._writable is not None:
                break
            try:
                message = self._decoder.next()
            except SqlError as error:
                self.end(error)
                return
            if message is None:
                break
            waiting = self._dispatch(message)
            if waiting is not None:
                self._busy = True
                self.server.spawn(self._wait(waiting), self._break)
            elif self._queued > WRITE_BEHIND:
                self.flush()
        else:
            self._let_others()
            return
        if not self._busy:
            self._rest()

    def _let_others(self) -> None:
        """Many messages came together: others are served before it goes on, and no more are read meanwhile."""
        if not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()
        self.server.loop.call_soon(self._proceed)

    def _rest(self) -> None:
        """Sends what is queued. Where no message is left or begun, the handler may answer the next bytes at once."""
        output = self.flush()
        if self._closing or self._writable is not None or self._decoder.buffered:
            return
        if self.machine.phase is Phase.READY:
            request, self._request = self._request, None
            self._express = self.handler.rest(request, output)

    def _dispatch(self, message: FrontendMessage) -> Awaitable[None] | None:
        try:
            accepted = self.machine.accept(message)
        except SqlError as error:
            self.end(error)
            return None
        if not accepted:
            return None
        try:
            if type(message) is Malformed:
                raise message.error
            return self.handler.handle(message)
        except SqlError as error:
            return self.handler.failed(error)
        except Exception as error:
            return self.handler.failed(self._unexpected(error))

    async def _wait(self, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except SqlError as error:
            await self._recover(error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # also a panic of a library in Rust, which is no Exception
            await self._recover(self._unexpected(error))
        self.resume()

    async def _fail(self, error: SqlError) -> None:
        await self._recover(error)
        self.resume()

    async def _recover(self, error: SqlError) -> None:
        try:
            waiting = self.handler.failed(error)
            if waiting is not None:
                await waiting
        except Exception as second:
            self._break(second)

    def _break(self, error: BaseException) -> None:
        """Ends the connection with a FATAL error, or without one where even that cannot be sent."""
        self._decoder = Decoder()  # what has come, which may be large, is of no use any more
        self._output.clear()
        try:
            self.end(self._unexpected(error))
        except Exception:
            self.abort()
        self._busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _unexpected(self, error: BaseException) -> SqlError:
        """The error for the client: that of the resource which is exhausted, or XX000."""
        logger.error("unexpected error", exc_info=error)
        return exhausted(error) or SqlError("XX000", f"{type(error).__name__}: {error}")

    async def _finish(self) -> None:
        if self._busy:
            self._idle = self.server.loop.create_future()
            await self._idle
        try:
            await self._close_handler()
        finally:
            self.server.clients.left(self)

    async def _close_handler(self) -> None:
        """Until it succeeds where a resource is exhausted: what is not closed keeps its locks."""
        while True:
            try:
                await self.handler.close()
                return
            except Exception as error:
                self._unexpected(error)
                if exhausted(error) is None:
                    return
            await asyncio.sleep(_CLOSE_AGAIN)
