"""The server's messages: one function per backend message, which returns its bytes. ``datarow`` makes messages of rows.

Knows nothing of when a message is due (machine, server).
https://www.postgresql.org/docs/15/protocol-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import pack
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError

_header = struct.Struct(">ci").pack
_field_tail = struct.Struct(">IhIhih").pack


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return _header(kind, len(body) + 4) + body


def _text(value: str) -> bytes:
    """A zero-terminated string. Zero characters in the text are dropped, since they would end it early."""
    return value.replace("\0", "").encode() + b"\0"


AUTHENTICATION_OK: Final = _message(b"R", pack(">i", 0))
PARSE_COMPLETE: Final = _message(b"1")
BIND_COMPLETE: Final = _message(b"2")
CLOSE_COMPLETE: Final = _message(b"3")
NO_DATA: Final = _message(b"n")
PORTAL_SUSPENDED: Final = _message(b"s")
EMPTY_QUERY_RESPONSE: Final = _message(b"I")
COPY_DONE: Final = _message(b"c")
READY_FOR_QUERY: Final[dict[str, bytes]] = {status: _message(b"Z", status.encode()) for status in "ITE"}
#: The one-byte answers to SSLRequest and GSSENCRequest.
ENCRYPTION_NO: Final = b"N"
ENCRYPTION_YES: Final = b"S"


class FieldDescription(Struct, frozen=True):
    """One column of a RowDescription; ``format`` 0 is text and 1 binary."""

    name: str
    type_oid: int
    type_length: int
    type_modifier: int = -1
    table_oid: int = 0
    attribute: int = 0
    format: int = 0


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    """AuthenticationSASL: the mechanisms from which the client may choose."""
    return _message(b"R", pack(">i", 10) + b"".join(map(_text, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    """AuthenticationSASLContinue: the server's first message."""
    return _message(b"R", pack(">i", 11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    """AuthenticationSASLFinal: the server's last message."""
    return _message(b"R", pack(">i", 12) + data)


def parameter_status(name: str, value: str) -> bytes:
    """ParameterStatus: a setting's value, sent at start-up and at each change."""
    return _message(b"S", _text(name) + _text(value))


def backend_key_data(process: int, key: bytes) -> bytes:
    """BackendKeyData: the key that a CancelRequest must contain."""
    return _message(b"K", pack(">I", process & 0xFFFFFFFF) + key)


def row_description(fields: Sequence[FieldDescription]) -> bytes:
    """RowDescription."""
    pieces = [pack(">h", len(fields))]
    for item in fields:
        pieces.append(_text(item.name))
        pieces.append(
            _field_tail(
                item.table_oid, item.attribute, item.type_oid, item.type_length, item.type_modifier, item.format
            )
        )
    return _message(b"T", b"".join(pieces))


def parameter_description(oids: Sequence[int]) -> bytes:
    """ParameterDescription."""
    return _message(b"t", pack(f">H{len(oids)}I", len(oids), *oids))


def command_complete(tag: str) -> bytes:
    """CommandComplete, such as ``INSERT 0 1``."""
    return _message(b"C", _text(tag))


def _report(kind: bytes, severity: str, error: SqlError) -> bytes:
    fields = [("S", severity), ("V", severity), ("C", error.sqlstate), ("M", error.message)]
    optional = [
        ("D", error.detail),
        ("H", error.hint),
        ("P", None if error.position is None else str(error.position)),
        ("W", error.where),
        ("R", error.routine),
    ]
    about = error.about
    if about is not None:
        optional += [("s", about.schema), ("t", about.table), ("c", about.column)]
        optional += [("d", about.datatype), ("n", about.constraint)]
    fields += [(code, value) for code, value in optional if value is not None]
    return _message(kind, b"".join(code.encode() + _text(value) for code, value in fields) + b"\0")


def error_response(error: SqlError, severity: str = "ERROR") -> bytes:
    """ErrorResponse; severity FATAL ends the session."""
    return _report(b"E", severity, error)


def notice_response(notice: SqlError, severity: str = "NOTICE") -> bytes:
    """NoticeResponse."""
    return _report(b"N", severity, notice)


def notification_response(process: int, channel: str, payload: str) -> bytes:
    """NotificationResponse: the payload of a NOTIFY by the session with process id ``process``."""
    return _message(b"A", pack(">I", process & 0xFFFFFFFF) + _text(channel) + _text(payload))


def negotiate_protocol_version(version: tuple[int, int], unknown_options: Sequence[str]) -> bytes:
    """NegotiateProtocolVersion: the version that the server speaks, and the unknown ``_pq_.`` options."""
    return _message(b"v", pack(">hhi", *version, len(unknown_options)) + b"".join(map(_text, unknown_options)))


def _copy_response(kind: bytes, columns: int, binary: bool) -> bytes:
    formats = [int(binary)] * columns
    return _message(kind, pack(f">bh{columns}h", int(binary), columns, *formats))


def copy_in_response(columns: int, binary: bool) -> bytes:
    """CopyInResponse: the client may send COPY data now."""
    return _copy_response(b"G", columns, binary)


def copy_out_response(columns: int, binary: bool) -> bytes:
    """CopyOutResponse: COPY data follows."""
    return _copy_response(b"H", columns, binary)


def copy_data(data: bytes) -> bytes:
    """CopyData."""
    return _message(b"d", data)
