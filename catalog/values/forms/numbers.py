"""xid, cid and xid8: numbers as C's strtoul() reads them, which takes what no number is for 0 (xid.c)."""

from __future__ import annotations

import re
from typing import Final

from catalog.values.errors import unsupported

_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX](?=[0-9a-fA-F])[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_WORD: Final = 1 << 64
_MANY: Final = 21  # decimal digits of what is beyond a word
#: Numbers of transactions that bigints carry.
_CARRIED: Final = 1 << 63


def read_unsigned(text: str, name: str) -> int:
    """A number's value, of an xid and a cid its last 32 bits. Raises 0A000 for an xid8 beyond those of bigints."""
    found = _NUMBER.match(text)
    if found is None:
        return 0
    digits = found[2]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    value = int(digits, base) if base != 10 or len(digits) < _MANY else _WORD
    value = _WORD - 1 if value >= _WORD else -value % _WORD if found[1] == "-" else value
    return carried_xid8(value) if name == "xid8" else value % (1 << 32)


def carried_xid8(value: int) -> int:
    """A number of a transaction. Raises 0A000 beyond those of bigints."""
    if value >= _CARRIED:
        raise unsupported(f"the xid8 {value}", "Use numbers below 9223372036854775808.")
    return value
