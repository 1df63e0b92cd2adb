"""xid, cid and xid8: numbers as C's strtoul() reads them, for which a text that is not a number is 0 (xid.c)."""

from __future__ import annotations

import re
from typing import Final

from catalog.values.errors import unsupported

_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX](?=[0-9a-fA-F])[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_WORD: Final = 1 << 64
_MANY: Final = 21  # more decimal digits than any word has
#: The transaction numbers that fit in bigints.
_CARRIED: Final = 1 << 63


def read_unsigned(text: str, name: str) -> int:
    """The value of a text; for xid and cid its last 32 bits. Raises 0A000 for an xid8 that does not fit in a bigint."""
    found = _NUMBER.match(text)
    if found is None:
        return 0
    digits = found[2]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    value = int(digits, base) if base != 10 or len(digits) < _MANY else _WORD
    value = _WORD - 1 if value >= _WORD else -value % _WORD if found[1] == "-" else value
    return carried_xid8(value) if name == "xid8" else value % (1 << 32)


def carried_xid8(value: int) -> int:
    """A transaction's number. Raises 0A000 if it does not fit in a bigint."""
    if value >= _CARRIED:
        raise unsupported(f"the xid8 {value}", "Use numbers below 9223372036854775808.")
    return value
