"""What a client says: one frozen class per frontend message of the v3 protocol.

Knows nothing of bytes (decoder) or of what is legal when (machine).
https://www.postgresql.org/docs/15/protocol-message-formats.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from catalog.errors import SqlError

#: The newest protocol that we speak, and the first one whose cancel keys are long.
NEWEST: Final = (3, 2)
LONG_KEYS: Final = (3, 2)


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """The first message of a session; ``version`` is (major, minor)."""

    parameters: dict[str, str] = field(hash=False)
    version: tuple[int, int] = (3, 0)


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """May we speak TLS? Answered by one byte, then another startup packet follows."""


@dataclass(frozen=True, slots=True)
class DirectTls:
    """The first bytes are TLS's own: the client asks for no leave (protocol 17, sslnegotiation=direct)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    """May we speak GSSAPI encryption? Answered like ``SSLRequest``."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Cancel what the session with this BackendKeyData is doing; the only message of its connection."""

    process: int
    key: bytes


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """Another server of the same storage is there, and proves it next; ``nonce`` is what this one is to prove itself
    with. PostgreSQL has no such message."""

    nonce: bytes


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """A password or a SASL response; what the bytes mean depends on the request before it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """Simple protocol: run all statements of a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Make a prepared statement; type oid 0 leaves a parameter's type to the server."""

    name: str
    text: str
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Make a portal of a prepared statement. Formats are 0 (text) and 1 (binary): none, one for all, or one each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: list[bytes | None] = field(hash=False)
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """Ask what a statement (``S``) or a portal (``P``) returns."""

    kind: Literal["S", "P"]
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal, at most ``max_rows`` rows of it (0: all)."""

    portal: str
    max_rows: int


@dataclass(frozen=True, slots=True)
class Close:
    """Forget a statement (``S``) or a portal (``P``)."""

    kind: Literal["S", "P"]
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Send what is waiting."""


@dataclass(frozen=True, slots=True)
class Sync:
    """End of an extended-protocol batch: commit or roll back, then ReadyForQuery."""


@dataclass(frozen=True, slots=True)
class CopyData:
    """COPY payload; consecutive messages arrive as one, since their boundaries mean nothing."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    """The COPY payload is complete."""


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client gives up its COPY."""

    message: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The fast-path call of a function, which nobody should use any more; of another server its question."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Terminate:
    """The client leaves."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message whose frame was whole and whose contents were not; the connection can go on after ``error``."""

    kind: type[FrontendMessage]
    error: SqlError = field(hash=False)


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
