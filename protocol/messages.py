"""What a client says: one frozen class per frontend message of the v3 protocol.

Knows nothing of bytes (decoder) or of what is legal when (machine).
https://www.postgresql.org/docs/15/protocol-message-formats.html
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from catalog.values.errors import SqlError

#: The newest protocol that we speak, and the first one whose cancel keys are long.
NEWEST: Final = (3, 2)
LONG_KEYS: Final = (3, 2)


class StartupMessage(Struct, frozen=True):
    """The first message of a session; ``version`` is (major, minor)."""

    parameters: dict[str, str]
    version: tuple[int, int] = (3, 0)


class SSLRequest(Struct, frozen=True):
    """May we speak TLS? Answered by one byte, then another startup packet follows."""


class DirectTls(Struct, frozen=True):
    """The first bytes are TLS's own: the client asks for no leave (protocol 17, sslnegotiation=direct)."""

    data: bytes


class GSSENCRequest(Struct, frozen=True):
    """May we speak GSSAPI encryption? Answered like ``SSLRequest``."""


class CancelRequest(Struct, frozen=True):
    """Cancel what the session with this BackendKeyData is doing; the only message of its connection."""

    process: int
    key: bytes


class PeerRequest(Struct, frozen=True):
    """Another server of the same storage is there, and proves it next; ``nonce`` is what this one is to prove itself
    with. PostgreSQL has no such message."""

    nonce: bytes


class PasswordMessage(Struct, frozen=True):
    """A password or a SASL response; what the bytes mean depends on the request before it."""

    data: bytes


class Query(Struct, frozen=True):
    """Simple protocol: run all statements of a text."""

    text: str


class Parse(Struct, frozen=True):
    """Make a prepared statement; type oid 0 leaves a parameter's type to the server."""

    name: str
    text: str
    oids: tuple[int, ...]


class Bind(Struct, frozen=True):
    """Make a portal of a prepared statement. Formats are 0 (text) and 1 (binary): none, one for all, or one each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: list[bytes | None]
    result_formats: tuple[int, ...]


class Describe(Struct, frozen=True):
    """Ask what a statement (``S``) or a portal (``P``) returns."""

    kind: Literal["S", "P"]
    name: str


class Execute(Struct, frozen=True):
    """Run a portal, at most ``max_rows`` rows of it (0: all)."""

    portal: str
    max_rows: int


class Close(Struct, frozen=True):
    """Forget a statement (``S``) or a portal (``P``)."""

    kind: Literal["S", "P"]
    name: str


class Flush(Struct, frozen=True):
    """Send what is waiting."""


class Sync(Struct, frozen=True):
    """End of an extended-protocol batch: commit or roll back, then ReadyForQuery."""


class CopyData(Struct, frozen=True):
    """COPY payload; consecutive messages arrive as one, since their boundaries mean nothing."""

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
    """The client leaves."""


class Malformed(Struct, frozen=True):
    """A message whose frame was whole and whose contents were not; the connection can go on after ``error``."""

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
