"""Functions on bit strings, which are texts of digits, as functions of the engine.

Owns: ``FUNCTIONS``, ``bits_*``, and ``STATEMENTS``, with PostgreSQL's errors (varbit.c).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor
from typing import Final

from catalog.values.errors import SqlError, out_of_range
from catalog.values.forms.bits import bits_of, fit_bits
from executor.embedded.functions.batches import Functions

_LARGEST: Final = 2**31 - 1
_FLIPPED: Final = str.maketrans("01", "10")


def _number(digits: str) -> int:
    return int(digits, 2) if digits else 0


def _both(name: str, compute: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def call(left: str, right: str) -> str:
        if len(left) != len(right):
            raise SqlError("22026", f"cannot {name} bit strings of different sizes")
        return f"{compute(int(left, 2), int(right, 2)):0{len(left)}b}" if left else ""

    return call


def _left(digits: str, count: int) -> str:
    if count < 0:
        return _right(digits, -count)
    return digits[count:].ljust(len(digits), "0")


def _right(digits: str, count: int) -> str:
    if count < 0:
        return _left(digits, -count)
    return digits[: max(len(digits) - count, 0)].rjust(len(digits), "0")


def _place(digits: str, place: int) -> int:
    if not 0 <= place < len(digits):
        raise SqlError("2202E", f"bit index {place} out of valid range (0..{len(digits) - 1})")
    return place


def _get(digits: str, place: int) -> int:
    return int(digits[_place(digits, place)])


def _set(digits: str, place: int, value: int) -> str:
    place = _place(digits, place)
    if value not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    return digits[:place] + str(value) + digits[place + 1 :]


def _from(digits: str, start: int) -> str:
    return digits[max(start - 1, 0) :]


def _part(digits: str, start: int, count: int) -> str:
    if count < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return digits[max(start - 1, 0) : max(start - 1 + count, 0)]


def _overlay_count(digits: str, new: str, start: int, count: int) -> str:
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    if start + count > _LARGEST:
        raise out_of_range("integer out of range")
    return _part(digits, 1, start - 1) + new + _from(digits, start + count)


def _overlay(digits: str, new: str, start: int) -> str:
    return _overlay_count(digits, new, start, len(new))


def _position(digits: str, part: str) -> int:
    return digits.find(part) + 1 if digits else 0


def _integer(bits: int, name: str) -> Callable[[str], int]:
    def call(digits: str) -> int:
        if len(digits) > bits:
            raise out_of_range(f"{name} out of range")
        number = _number(digits)
        return number - (1 << bits) if number >> bits - 1 else number

    return call


def _fit(digits: str, name: str, length: int) -> str:
    return fit_bits(digits, name, length, explicit=False)


FUNCTIONS: Final[Functions] = {
    "bits_and": (_both("AND", and_), "VARCHAR"),
    "bits_or": (_both("OR", or_), "VARCHAR"),
    "bits_xor": (_both("XOR", xor), "VARCHAR"),
    "bits_not": (lambda digits: digits.translate(_FLIPPED), "VARCHAR"),
    "bits_left": (_left, "VARCHAR"),
    "bits_right": (_right, "VARCHAR"),
    "bits_octets": (lambda digits: -(-len(digits) // 8), "INTEGER"),
    "bits_count": (lambda digits: digits.count("1"), "BIGINT"),
    "bits_get": (_get, "INTEGER"),
    "bits_set": (_set, "VARCHAR"),
    "bits_from": (_from, "VARCHAR"),
    "bits_part": (_part, "VARCHAR"),
    "bits_overlay": (_overlay, "VARCHAR"),
    "bits_overlay_count": (_overlay_count, "VARCHAR"),
    "bits_position": (_position, "INTEGER"),
    "bits_int4": (_integer(32, "integer"), "INTEGER"),
    "bits_int8": (_integer(64, "bigint"), "BIGINT"),
    "bits_of": (bits_of, "VARCHAR"),
    "bits_fit": (_fit, "VARCHAR"),
}

#: Conversions between such texts and the engine's own bit strings, which cannot be empty.
STATEMENTS: Final = """
CREATE MACRO ms_text_bit(x) AS CAST('1' || x AS BIT);
CREATE MACRO ms_bit_text(x) AS substring(CAST(x AS VARCHAR), 2);
"""
