"""A server in this process, with the test as its clients: no sockets, and no threads for clients.

Connections get their bytes from the test, over a transport that keeps the output: so a request arrives in one piece or
in several, as the test chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from server.fastpath.recognised_requests import Express
from server.login.startup import Startup
from server.net.connection import Connection
from server.operations.config import Chosen, Config
from server.serving import Server, Stop
from server.session.session import Session
from tests.server.wire import SYNC, Message, frame, parse


class Pipe(asyncio.Transport):
    """A transport whose other end is the test."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000)})
        self.protocol: Connection | None = None
        self.data = b""
        self.closed = False
        self.wrote = asyncio.Event()

    def write(self, data: Any) -> None:
        self.data += data
        self.wrote.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        if not self.closed and self.protocol is not None:
            self.closed = True
            self.wrote.set()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


class Peer:
    """One client of a server in this process."""

    def __init__(self, loop: asyncio.Runner, server: Server) -> None:
        self._loop = loop
        self.pipe = Pipe()
        self.connection = Connection(server, partial(Startup, server=server))
        self.pipe.protocol = self.connection
        self.connection.connection_made(self.pipe)
        body = b"user\0millstream\0\0"
        self.feed(struct.pack(">ihh", len(body) + 8, 3, 0) + body)

    @property
    def session(self) -> Session:
        """Its session."""
        return cast(Session, self.connection.handler)

    @property
    def express(self) -> Express:
        """What the session has learned."""
        return cast(Express, self.session.express)

    def feed(self, *pieces: bytes, answers: int = 1, then: Callable[[], object] | None = None) -> bytes:
        """Passes bytes piece by piece, and calls a function in the same turn of the loop; returns the output up to a
        number of ReadyForQuery, or to the end."""
        return self._loop.run(self._feed(pieces, answers, then))

    async def _feed(self, pieces: tuple[bytes, ...], answers: int, then: Callable[[], object] | None) -> bytes:
        for piece in pieces:
            if not self.pipe.closed:
                self.connection.data_received(piece)
        if then is not None:
            then()
        async with asyncio.timeout(60):
            while not self.pipe.closed and count(self.pipe.data) < answers:
                self.pipe.wrote.clear()
                await self.pipe.wrote.wait()
        data, self.pipe.data = self.pipe.data, b""
        return data

    def ask(self, *messages: Message) -> bytes:
        """Sends messages in one piece."""
        return self.feed(request(*messages))

    def query(self, text: str) -> bytes:
        """Sends a Query."""
        return self.ask(("Q", text.encode() + b"\0"))

    def is_express(self, data: bytes) -> bool:
        """Whether a request would be answered by its bytes."""
        return self.connection.at_rest and self.express.answer(data) is not None


def count(data: bytes) -> int:
    """The number of ReadyForQuery messages in an answer."""
    position = found = 0
    while position + 5 <= len(data):
        found += data[position : position + 1] == b"Z"
        position += 1 + struct.unpack_from(">i", data, position + 1)[0]
    return found


def request(*messages: Message) -> bytes:
    """The bytes of messages."""
    return b"".join(frame(letter, body) for letter, body in messages)


class House:
    """A server and its clients; the owner's connection stays."""

    def __init__(self, loop: asyncio.Runner, server: Server, prepared: Mapping[str, str]) -> None:
        """``prepared`` are the statements, by name, that each client prepares at its start."""
        self._loop = loop
        self._prepared = prepared
        self.server = server
        self._peers: list[Peer] = []
        self.owner = self.peer()
        self._peers.clear()

    def peer(self) -> Peer:
        """A client that has prepared the statements."""
        made = Peer(self._loop, self.server)
        for name, text in self._prepared.items():
            made.ask(parse(text, name), SYNC)
        self._peers.append(made)
        return made

    def leave(self) -> None:
        """Closes all clients except the owner."""
        for each in self._peers:
            each.feed(request(("X", b"")))
        self._peers.clear()


@contextlib.contextmanager
def opened(config: Config, prepared: Mapping[str, str]) -> Iterator[House]:
    """A server, from its start to its end."""
    with asyncio.Runner() as loop:
        stop, server, task = loop.run(start(config))
        yield House(loop, server, prepared)
        loop.run(end(stop, task))


async def start(config: Config) -> tuple[Stop, Server, asyncio.Task[None]]:
    stop, server = Stop(), Server(Chosen(config))
    task = asyncio.create_task(server.run(stop))
    await asyncio.sleep(0)
    await server.wait_open()
    return stop, server, task


async def end(stop: Stop, task: asyncio.Task[None]) -> None:
    stop.at_once.set()
    stop.asked.set()
    await task
