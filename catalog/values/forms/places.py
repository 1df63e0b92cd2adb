"""Log positions, row positions, and transaction snapshots: pg_lsn, tid, pg_snapshot, txid_snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from catalog.values.errors import invalid_text

_LSN: Final = re.compile(r"([0-9a-f]{1,8})/([0-9a-f]{1,8})\Z", re.ASCII | re.IGNORECASE)
_TID: Final = re.compile(r"\((\d{1,10}),(\d{1,5})\)\Z", re.ASCII)
_SNAPSHOT: Final = re.compile(r"(\d{1,20}):(\d{1,20}):((?:\d{1,20}(?:,\d{1,20})*)?)\Z", re.ASCII)
_BLANKS: Final = " \t\n\v\f\r"
_LARGEST: Final = (1 << 64) - 1
#: 0 is no transaction's number, and 1 and 2 are special (FirstNormalTransactionId).
_NONE: Final = 0


def read_lsn(text: str) -> str:
    """A log position. Raises 22P02."""
    found = _LSN.match(text)
    if found is None:
        raise invalid_text("pg_lsn", text)
    return "/".join(f"{int(part, 16):X}" for part in found.groups())


def read_tid(text: str) -> str:
    """A row position: block and item. Raises 22P02."""
    found = _TID.match(text.strip(_BLANKS))
    if found is not None:
        block, place = map(int, found.groups())
        if block < 1 << 32 and place < 1 << 16:
            return f"({block},{place})"
    raise invalid_text("tid", text)


def read_snapshot(text: str) -> str:
    """xmin:xmax:xip,... with ascending numbers; a repeated number counts once (parse_snapshot()). Raises 22P02."""
    found = _SNAPSHOT.match(text)
    if found is not None:
        least, most = int(found[1]), int(found[2])
        running = sorted_set(found[3])
        is_sane = _NONE < least <= most <= _LARGEST
        if is_sane and running is not None and all(least <= number < most for number in running):
            return f"{least}:{most}:{','.join(map(str, running))}"
    raise invalid_text("pg_snapshot", text)


def sorted_set(text: str) -> list[int] | None:
    """Ascending numbers without repetitions; None if they do not ascend."""
    numbers = [int(number) for number in text.split(",")] if text else []
    return sorted(set(numbers)) if numbers == sorted(numbers) else None


def lsn_order(text: str) -> str:
    """A text that sorts as log positions do."""
    high, low = text.split("/")
    return f"{high:0>8}{low:0>8}"


def lsn_ordered(key: str) -> str:
    """The log position for such a text."""
    return read_lsn(f"{key[:8]}/{key[8:]}")


def tid_order(text: str) -> str:
    """A text that sorts as row positions do."""
    block, place = text[1:-1].split(",")
    return f"{int(block):010}{int(place):05}"


def tid_ordered(key: str) -> str:
    """The row position for such a text."""
    return f"({int(key[:10])},{int(key[10:])})"


READERS: Final[dict[str, Callable[[str], str]]] = {
    "pg_lsn": read_lsn,
    "tid": read_tid,
    **dict.fromkeys(("pg_snapshot", "txid_snapshot"), read_snapshot),
}
ORDERS: Final[dict[str, Callable[[str], str]]] = {
    "lsn_order": lsn_order,
    "lsn_ordered": lsn_ordered,
    "tid_order": tid_order,
    "tid_ordered": tid_ordered,
}
