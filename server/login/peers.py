"""Requests between servers of one storage, on the port of their clients.

Owns: how one proves to another that it has the storage's key, and the way of a request and its answer. Both sides prove
it, over a number of the other's (challenge and response; HMAC is RFC 2104's) and the certificate of the answering
server (channel binding, RFC 5056), which excludes a man in the middle: the answering server uses its own certificate,
also where the connection is not encrypted, since an attacker may have told the asking server that it cannot be. Knows
nothing of what is asked (``executor/remote_reads/remote_views``).

    asks      PeerRequest: its nonce
    answers   AuthenticationSASLContinue: its nonce, and the proof that it has the key
    asks      PasswordMessage: the same proof of its own; it is answered AuthenticationOk
    asks      FunctionCall: a question            } again and again
    answers   CopyData: pieces of the answer, CopyDone }
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from struct import Struct, pack
from typing import TYPE_CHECKING, Final, Literal

from catalog.values.errors import SqlError
from protocol import encoder
from protocol.decoder import PEER, SSL
from protocol.messages import FrontendMessage, FunctionCall, Terminate
from server.net.tls import fingerprint

if TYPE_CHECKING:
    from executor.database.database import Database
    from server.net.connection import Connection
    from server.services import Services

_NONCE: Final = 32
#: Bytes of an answer in one message, and of a message from a server that is not authenticated.
_PIECE: Final = 1 << 20
_UNKNOWN: Final = 1000
#: Seconds until a connection must be there, until the other is authenticated (it may stand still, and then be taken
#: over, which is a better end), and between two looks whether an answer is still wanted.
_CONNECT: Final = 5.0
_MEET: Final = 30.0
_STEP: Final = 0.05
#: Unused connections to one server that are kept open.
_IDLE: Final = 4

_message: Final = Struct(">ci")


def proof(key: bytes, side: Literal["asks", "answers"], asking: bytes, answering: bytes, binding: bytes) -> bytes:
    """The proof that a side has the key, over both nonces and the fingerprint of the answering server (empty without
    TLS)."""
    return hmac.digest(key, side.encode() + asking + answering + binding, "sha256")


# -- the answering server ---------------------------------------------------------------------------------------------


class Meeting:
    """A server that has said that it is one, until it has proved it."""

    def __init__(self, key: bytes, nonce: bytes, binding: bytes) -> None:
        """``binding`` is the fingerprint of this server's certificate. Raises 08P01 for a nonce that is none."""
        if len(nonce) != _NONCE:
            raise SqlError("08P01", "invalid length of startup packet")
        self._own = secrets.token_bytes(_NONCE)
        self._proof = proof(key, "asks", nonce, self._own, binding)
        shown = proof(key, "answers", nonce, self._own, binding)
        self.greeting = encoder.authentication_sasl_continue(self._own + shown)

    def require(self, given: bytes) -> None:
        """Raises 28000 for a proof that is none."""
        if not hmac.compare_digest(given, self._proof):
            raise SqlError("28000", "the other server does not have the key of this storage")


class Answering:
    """The handler of a connection over which another server asks."""

    backend = None

    def __init__(self, connection: Connection, server: Services, database: Database) -> None:
        self._connection = connection
        self._server = server
        self._reader = database.own_reader()
        self._answers = False

    def handle(self, message: FrontendMessage) -> Awaitable[None] | None:
        """One question."""
        match message:
            case FunctionCall(data=data):
                return self._answer(data)
            case Terminate():
                self._connection.end()
            case _:
                raise SqlError("08P01", f"unexpected message {type(message).__name__}")
        return None

    async def _answer(self, question: bytes) -> None:
        from executor.moving.answers import answer

        server, self._answers = self._server, True
        try:
            found = await server.loop.run_in_executor(server.workers, answer, self._reader, question)
            for start in range(0, len(found), _PIECE):
                self._connection.send(encoder.copy_data(found[start : start + _PIECE]))
                await self._connection.drain()
            self._connection.send(encoder.COPY_DONE)
        finally:
            self._answers = False

    def failed(self, error: SqlError) -> None:
        """Closes the connection after any error: the asking server connects again."""
        self._connection.end(error)

    def rest(self, request: bytes | None, output: bytes) -> None:
        """What comes next is a question again."""

    @property
    def is_under_way(self) -> bool:
        """Whether a question is being answered."""
        return self._answers

    def cancel(self) -> None:
        """The answer is not needed any more."""
        self._reader.cancel()

    @property
    def held_bytes(self) -> int:
        """Nothing is held between two questions."""
        return 0

    def exceed(self) -> None:
        """Ends the question: the other server asks again."""
        self.cancel()

    async def close(self) -> None:
        """The other server is gone."""


# -- the asking server ------------------------------------------------------------------------------------------------


class Peers:
    """This server's connections to others. Safe for many threads, which wait."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._lock = threading.Lock()
        self._idle: dict[str, list[_Asking]] = {}

    def ask(self, address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        """The answer of the server at an address. Raises OSError where it cannot be reached, or is not of this
        storage, and Unwanted where ``is_over`` says so first."""
        kept = self._taken(address)
        if kept is not None:
            with contextlib.suppress(OSError):  # it has ended meanwhile: it is asked anew
                return self._asked(address, kept, question, is_over)
        return self._asked(address, _Asking(address, self._key, is_over), question, is_over)

    def _asked(self, address: str, asking: _Asking, question: bytes, is_over: Callable[[], bool]) -> bytes:
        try:
            found = asking.ask(question, is_over)
        except BaseException:
            asking.close()
            raise
        with self._lock:
            idle = self._idle.setdefault(address, [])
            if len(idle) < _IDLE:
                idle.append(asking)
                return found
        asking.close()
        return found

    def _taken(self, address: str) -> _Asking | None:
        with self._lock:
            idle = self._idle.get(address)
            return idle.pop() if idle else None

    def close(self) -> None:
        """Ends all unused connections."""
        with self._lock:
            idle = [asking for each in self._idle.values() for asking in each]
            self._idle.clear()
        for asking in idle:
            asking.close()


class _Asking:
    """One connection. For one thread at a time."""

    def __init__(self, address: str, key: bytes, is_over: Callable[[], bool]) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise OSError(f'"{address}" is not an address')
        self._socket: socket.socket = socket.create_connection((host.strip("[]"), int(port)), _CONNECT)
        self._received = bytearray()
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._meet(host, key, is_over)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends it."""
        self._socket.close()

    def _meet(self, host: str, key: bytes, is_over: Callable[[], bool]) -> None:
        """Encrypts where the other server can, and proves both sides."""
        deadline = time.monotonic() + _MEET

        def is_late() -> bool:
            if time.monotonic() > deadline:
                raise TimeoutError("it does not answer")
            return is_over()

        binding = b""
        self._socket.sendall(pack(">ii", 8, SSL))
        if self._take(1, is_late) == encoder.ENCRYPTION_YES:
            if self._received:
                raise ConnectionError("it sent unencrypted data after the SSLRequest")
            encrypted = _encrypted(self._socket, host)
            self._socket, binding = encrypted, fingerprint(encrypted.getpeercert(True) or b"")
        nonce = secrets.token_bytes(_NONCE)
        self._socket.sendall(pack(">ii", 8 + _NONCE, PEER) + nonce)
        kind, body = self._next(is_late, _UNKNOWN)
        other, proved = body[4 : 4 + _NONCE], body[4 + _NONCE :]
        if kind != b"R" or not hmac.compare_digest(proved, proof(key, "answers", nonce, other, binding)):
            raise ConnectionError("the server at that address does not share this storage")
        self._send(b"p", proof(key, "asks", nonce, other, binding))
        if self._next(is_late, _UNKNOWN)[0] != b"R":
            raise ConnectionError("it does not accept this server as one of its storage")

    def ask(self, question: bytes, is_over: Callable[[], bool]) -> bytes:
        """The answer to a question."""
        self._send(b"F", question)
        pieces = []
        while (found := self._next(is_over))[0] == b"d":
            pieces.append(found[1])
        if found[0] != b"c":
            raise ConnectionError("it closed the connection")
        return b"".join(pieces)

    def _send(self, kind: bytes, body: bytes) -> None:
        self._socket.settimeout(_CONNECT)
        self._socket.sendall(_message.pack(kind, len(body) + 4) + body)

    def _next(self, is_over: Callable[[], bool], longest: int = _PIECE + 4) -> tuple[bytes, bytes]:
        kind, length = _message.unpack(self._take(_message.size, is_over))
        if not 4 <= length <= longest:
            raise ConnectionError("the server at that address does not share this storage")
        return kind, self._take(length - 4, is_over)

    def _take(self, count: int, is_over: Callable[[], bool]) -> bytes:
        from executor.remote_reads.messages import Unwanted

        self._socket.settimeout(_STEP)
        while len(self._received) < count:
            if is_over():
                raise Unwanted
            with contextlib.suppress(TimeoutError):
                data = self._socket.recv(_PIECE)
                if not data:
                    raise ConnectionError("it closed the connection")
                self._received += data
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


def _encrypted(plain: socket.socket, host: str) -> ssl.SSLSocket:
    """TLS as in sslmode=require: whose the certificate is, the other's proof shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain.settimeout(_CONNECT)
    return context.wrap_socket(plain, server_hostname=host or None)
