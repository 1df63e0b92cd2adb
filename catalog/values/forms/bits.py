"""bit(n) and bit varying(n): texts of binary digits. They sort as PostgreSQL compares bit strings (varbit.c): bit by
bit from the left, and a string before its extensions.

Owns: their input, the fitting to their types' lengths, and numbers as bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from catalog.values.errors import SqlError

#: VARBITMAXLEN: the most bits of a value.
LONGEST: Final = (1 << 31) - 1 - 8
#: MaxAttrSize * 8: the largest length that a type can declare.
LONGEST_DECLARED: Final = 10 * 1024 * 1024 * 8
_DIGITS: Final = {"binary": re.compile("[^01]"), "hexadecimal": re.compile("[^0-9A-Fa-f]")}


def read_bits(text: str) -> str:
    """Binary digits, with an optional b before them, or hexadecimal digits after an x. Raises 22P02."""
    head = text[:1].lower()
    base = "hexadecimal" if head == "x" else "binary"
    digits = text[1:] if head in ("b", "x") else text
    if (wrong := _DIGITS[base].search(digits)) is not None:
        raise SqlError("22P02", f'"{wrong.group()}" is not a valid {base} digit')
    if base == "binary" or not digits:
        return digits
    return f"{int(digits, 16):0{4 * len(digits)}b}"


def fit_bits(digits: str, name: str, length: int, explicit: bool) -> str:
    """A bit string fitted to a length; only an explicit cast truncates or pads it. Raises 22026 and 22001."""
    if explicit:
        return digits[:length] if name == "varbit" else digits[:length].ljust(length, "0")
    if name == "bit" and len(digits) != length:
        raise SqlError("22026", f"bit string length {len(digits)} does not match type bit({length})")
    if len(digits) > length:
        raise SqlError("22001", f"bit string too long for type bit varying({length})")
    return digits


def bits_of(number: int, length: int) -> str:
    """The last bits of a number in two's complement."""
    return f"{number & ((1 << length) - 1):0{length}b}"


READERS: Final[dict[str, Callable[[str], str]]] = dict.fromkeys(("bit", "varbit"), read_bits)
