"""The client's messages: one frozen class per frontend message of the v3 protocol.

Knows nothing of bytes (decoder) or of which message is legal when (machine).
https://www.postgresql.org/docs/15/protocol-message-formats.html
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from catalog.values.errors import SqlError

#: The newest supported protocol version, and the first one with cancel keys of variable length.
NEWEST: Final = (3, 2)
LONG_KEYS: Final = (3, 2)


class StartupMessage(Struct, frozen=True):
    """The first message of a session; ``version`` is (major, minor)."""

    parameters: dict[str, str]
    version: tuple[int, int] = (3, 0)


class SSLRequest(Struct, frozen=True):
    """Asks for TLS. The answer is one byte; then another startup packet follows."""


class DirectTls(Struct, frozen=True):
    """The first bytes are TLS's own: the client starts TLS without a request (PostgreSQL 17, sslnegotiation=direct)."""

    data: bytes


class GSSENCRequest(Struct, frozen=True):
    """Asks for GSSAPI encryption. Answered like ``SSLRequest``."""


class CancelRequest(Struct, frozen=True):
    """Cancel the current statement of the session with this BackendKeyData; the only message of its connection."""

    process: int
    key: bytes


class PeerRequest(Struct, frozen=True):
    """Another server of the same storage connects and will authenticate itself next. This server uses ``nonce`` to
    authenticate itself to the other one. PostgreSQL has no such message."""

    nonce: bytes


class PasswordMessage(Struct, frozen=True):
    """A password or a SASL response; what the bytes mean depends on the request before it."""

    data: bytes


class Query(Struct, frozen=True):
    """Simple protocol: run all statements in a text."""

    text: str


class Parse(Struct, frozen=True):
    """Create a prepared statement. With type oid 0, the server determines a parameter's type."""

    name: str
    text: str
    oids: tuple[int, ...]


class Bind(Struct, frozen=True):
    """Create a portal from a prepared statement. Formats are 0 (text) and 1 (binary): none, one for all, or one
    each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: list[bytes | None]
    result_formats: tuple[int, ...]


class Describe(Struct, frozen=True):
    """Ask for the result columns of a statement (``S``) or a portal (``P``)."""

    kind: Literal["S", "P"]
    name: str


class Execute(Struct, frozen=True):
    """Run a portal, for at most ``max_rows`` rows (0: all)."""

    portal: str
    max_rows: int


class Close(Struct, frozen=True):
    """Forget a statement (``S``) or a portal (``P``)."""

    kind: Literal["S", "P"]
    name: str


class Flush(Struct, frozen=True):
    """Send all waiting messages."""


class Sync(Struct, frozen=True):
    """End of an extended-protocol batch: commit or roll back, then ReadyForQuery."""


class CopyData(Struct, frozen=True):
    """COPY payload. Consecutive messages arrive as one, as the boundaries have no meaning."""

    data: bytes


class CopyDone(Struct, frozen=True):
    """The COPY payload is complete."""


class CopyFail(Struct, frozen=True):
    """The client gives up its COPY."""

    message: str


class FunctionCall(Struct, frozen=True):
    """The fast-path call of a function, which is deprecated; from another server, its request."""

    data: bytes


class Terminate(Struct, frozen=True):
    """The client disconnects."""


class Malformed(Struct, frozen=True):
    """A message with a whole frame and invalid contents; the connection can go on after ``error`` is reported."""

    kind: type[FrontendMessage]
    error: SqlError


FrontendMessage = (
    StartupMessage
    | SSLRequest
    | DirectTls
    | GSSENCRequest
    | CancelRequest
    | PeerRequest
    | PasswordMessage
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | CopyData
    | CopyDone
    | CopyFail
    | FunctionCall
    | Terminate
    | Malformed
)
