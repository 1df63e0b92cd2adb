"""Bytes to hexadecimal digits and back, a column at a time: what bytea and uuid share."""

from __future__ import annotations

from typing import Final

import numpy as np

from protocol.values.codec import Vector

_DIGITS: Final = b"0123456789abcdef"
#: Two digits for each byte, as one 16-bit number in memory order.
_PAIRS: Final = np.frombuffer(b"".join(bytes((_DIGITS[i >> 4], _DIGITS[i & 15])) for i in range(256)), np.uint16)
#: The value of each digit's character, 255 for other characters.
_NIBBLES: Final = np.full(256, 255, np.uint8)
_NIBBLES[np.frombuffer(_DIGITS, np.uint8)] = np.arange(16)
_NIBBLES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def to_digits(data: Vector) -> Vector:
    """Two lower-case digits for each byte."""
    digits: Vector = _PAIRS[data].view(np.uint8)
    return digits


def from_digits(digits: Vector) -> Vector | None:
    """The bytes of pairs of digits; None if another character is among them."""
    nibbles = _NIBBLES[digits]
    if (nibbles == 255).any():
        return None
    data: Vector = nibbles[0::2] << 4 | nibbles[1::2]
    return data
