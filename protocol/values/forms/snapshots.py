"""Log positions, row positions and snapshots in binary: pg_lsn, tid, pg_snapshot and txid_snapshot; xid8 is a 64-bit
number."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.forms.numbers import carried_xid8, read_unsigned
from catalog.values.types import SqlType
from protocol.values.codec import Codec, Value, by_value
from protocol.values.forms.form_codec import Binary, as_bytes, exactly, formed_codec, short
from protocol.values.numbers import integers_and_floats

_OF_BIGINTS: Final = integers_and_floats.CODECS["int8"]


def _write_lsn(text: str) -> bytes:
    high, low = text.split("/")
    return (int(high, 16) << 32 | int(low, 16)).to_bytes(8, "big")


def _read_lsn(data: bytes) -> str:
    exactly(data, 8)
    return f"{data[:4].hex()}/{data[4:].hex()}"


def _write_tid(text: str) -> bytes:
    block, place = text[1:-1].split(",")
    return pack(">IH", int(block), int(place))


def _read_tid(data: bytes) -> str:
    block, place = unpack(">IH", exactly(data, 6))
    return f"({block},{place})"


def _write_snapshot(text: str) -> bytes:
    least, most, running = text.split(":")
    inside = [int(number) for number in running.split(",")] if running else []
    return pack(f">i{2 + len(inside)}Q", len(inside), int(least), int(most), *inside)


def _read_snapshot(data: bytes) -> str:
    """The text of a binary snapshot. Raises 22P03 and 08P01."""
    if len(data) < 20:
        raise short()
    count = int.from_bytes(data[:4], "big", signed=True)
    bad = SqlError("22P03", "invalid external pg_snapshot data")
    if count < 0:
        raise bad
    least, most, *running = unpack(f">{2 + count}Q", exactly(data[4:], 8 * (2 + count)))
    if not 0 < least <= most or not _is_inside(running, least, most):
        raise bad
    return f"{least}:{most}:{','.join(map(str, running))}"


def _is_inside(running: Sequence[int], least: int, most: int) -> bool:
    return list(running) == sorted(running) and all(least <= number < most for number in running)


def _read_xid8(text: str, type_: SqlType, timezone: str = "") -> Value:
    return read_unsigned(text, "xid8")


def _xid8_column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    return by_value(texts, lambda text: read_unsigned(text, "xid8"), pa.int64())


def _xid8_from_binary(data: bytes, type_: SqlType) -> Value:
    return carried_xid8(int.from_bytes(exactly(data, 8), "big"))


def _xid8_column_from_binary(values: pa.Array, type_: SqlType) -> pa.Array:
    return by_value(values, lambda data: carried_xid8(int.from_bytes(exactly(as_bytes(data), 8), "big")), pa.int64())


_BINARY: Final[Binary] = {
    "pg_lsn": (_write_lsn, _read_lsn),
    "tid": (_write_tid, _read_tid),
    **dict.fromkeys(("pg_snapshot", "txid_snapshot"), (_write_snapshot, _read_snapshot)),
}
CODECS: Final[dict[str, Codec]] = {
    **{name: formed_codec(name, _BINARY) for name in _BINARY},
    "xid8": replace(
        _OF_BIGINTS,
        from_text=_read_xid8,
        column_from_text=_xid8_column,
        from_binary=_xid8_from_binary,
        column_from_binary=_xid8_column_from_binary,
    ),
}
