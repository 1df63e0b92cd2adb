"""Points, lines, segments, boxes, paths, polygons and circles of doubles (geo_ops.c).

Owns: their input and output, and ``numbers_of``, a value's doubles in the order of its binary format. These types
cannot be grouped or sorted; PostgreSQL has no operator classes for that either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, invalid_text, out_of_range

_NUMBER: Final = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?:infinity|inf|nan)))[ \t\n\v\f\r]*",
    re.IGNORECASE | re.ASCII,
)
_BLANKS: Final = " \t\n\v\f\r"
#: EPSILON of geo_decls.h: coordinates that differ by less are equal.
_EPSILON: Final = 1.0e-06
_ZERO_LINE: Final = "invalid line specification: A and B cannot both be zero"

Point = tuple[float, float]


def double_text(value: float) -> str:
    """The output of float8out(): the shortest digits that identify the double, with an exponent below 1e-4 and from
    1e15 on."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if not value or 1e-4 <= abs(value) < 1e15:
        return repr(value).removesuffix(".0")
    sign, digits, exponent = _parts(value)
    whole = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{whole}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _parts(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits, and the exponent of the first one."""
    mantissa, _, written = f"{value!r}".lower().lstrip("-").partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).rstrip("0")
    return "-" * (value < 0), digits, int(written) + len(whole) - 1 if written else len(whole) - 1


class _Scanner(Struct):
    """Reads a text from its beginning."""

    name: str
    text: str
    place: int = 0

    def wrong(self) -> SqlError:
        return invalid_text(self.name, self.text)

    def blanks(self) -> None:
        while self.text[self.place : self.place + 1] in _BLANKS and self.place < len(self.text):
            self.place += 1

    def sees(self, char: str) -> bool:
        return self.text.startswith(char, self.place)

    def takes(self, char: str) -> bool:
        found = self.sees(char)
        self.place += found
        return found

    def needs(self, *chars: str) -> None:
        if not any(self.takes(char) for char in chars):
            raise self.wrong()

    def ends(self) -> None:
        if self.place < len(self.text):
            raise self.wrong()

    def number(self) -> float:
        """A number, as float8in_internal() reads it."""
        found = _NUMBER.match(self.text, self.place)
        if found is None:
            raise self.wrong()
        self.place = found.end()
        written = found[1]
        value = _of_hexadecimal(written) if "x" in written.lower() else float(written)
        is_named = written.lstrip("+-")[:1] in "iInN"
        if not is_named and (math.isinf(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", written)[0]))):
            raise out_of_range(f'"{written}" is out of range for type double precision')
        return value

    def pair(self) -> Point:
        """A pair of coordinates, as pair_decode() reads it."""
        self.blanks()
        inside = self.takes("(")
        x = self.number()
        self.needs(",")
        y = self.number()
        if inside:
            self.needs(")")
            self.blanks()
        return x, y

    def points(self, count: int, may_be_open: bool) -> tuple[list[Point], bool]:
        """The points, and whether the path is open, as path_decode() reads them."""
        self.blanks()
        depth, is_open = 0, self.sees("[")
        if is_open:
            if not may_be_open:
                raise self.wrong()
            depth, self.place = 1, self.place + 1
        elif self.sees("("):
            inner = self.place + 1 + len(self.text[self.place + 1 :]) - len(self.text[self.place + 1 :].lstrip(_BLANKS))
            if self.text.startswith("(", inner) or self.text.rfind("(") == self.place:
                depth, self.place = 1, inner
        found = []
        for _ in range(count):
            found.append(self.pair())
            self.takes(",")
        for left in range(depth, 0, -1):
            self.needs(")", *("]" for _ in range(is_open and left == 1)))
            self.blanks()
        return found, is_open


def _of_hexadecimal(written: str) -> float:
    try:
        return float.fromhex(written)
    except OverflowError:
        return math.inf


def point_text(point: Point) -> str:
    """The text of a pair of coordinates."""
    return f"({double_text(point[0])},{double_text(point[1])})"


def _joined(points: Sequence[Point]) -> str:
    return ",".join(map(point_text, points))


def _point(scanner: _Scanner) -> str:
    point = scanner.pair()
    scanner.ends()
    return point_text(point)


def _segment(scanner: _Scanner) -> str:
    points, _ = scanner.points(2, True)
    scanner.ends()
    return f"[{_joined(points)}]"


def _box(scanner: _Scanner) -> str:
    points, _ = scanner.points(2, False)
    scanner.ends()
    return box_text(*points)


def box_text(one: Point, other: Point) -> str:
    """The text of a box: the upper right corner, then the lower left one."""
    (left, right), (low, high) = (_ascending(*pair) for pair in zip(one, other, strict=True))
    return _joined([(right, high), (left, low)])


def _ascending(high: float, low: float) -> tuple[float, float]:
    """Two coordinates, the greater first; NaN is greater than all numbers (float8_lt())."""
    swapped = high < low or (low != low and high == high)
    return (high, low) if swapped else (low, high)


def _count(scanner: _Scanner) -> int:
    """The number of pairs, as pair_count() finds it."""
    commas = scanner.text.count(",")
    if commas % 2 == 0:
        raise scanner.wrong()
    return (commas + 1) // 2


def _path(scanner: _Scanner) -> str:
    count = _count(scanner)
    scanner.blanks()
    inside = scanner.sees("(") and scanner.text.rfind("(") == scanner.place
    scanner.place += inside
    points, is_open = scanner.points(count, True)
    if inside:
        scanner.needs(")")
        scanner.blanks()
    scanner.ends()
    return path_text(points, not is_open)


def path_text(points: Sequence[Point], closed: bool) -> str:
    """The text of a path: in parentheses if closed, in brackets if open."""
    return f"({_joined(points)})" if closed else f"[{_joined(points)}]"


def _polygon(scanner: _Scanner) -> str:
    points, _ = scanner.points(_count(scanner), False)
    scanner.ends()
    return path_text(points, True)


def _line(scanner: _Scanner) -> str:
    scanner.blanks()
    if not scanner.takes("{"):
        (one, other), _ = scanner.points(2, True)
        scanner.ends()
        return _line_through(one, other)
    first = scanner.number()
    scanner.needs(",")
    second = scanner.number()
    scanner.needs(",")
    third = scanner.number()
    scanner.needs("}")
    scanner.blanks()
    scanner.ends()
    return line_text(first, second, third)


def line_text(a: float, b: float, c: float, state: str = "22P02") -> str:
    """The text of the line Ax + By + C = 0. Raises ``state`` if there is no such line."""
    if abs(a) <= _EPSILON and abs(b) <= _EPSILON:
        raise SqlError(state, _ZERO_LINE)
    return f"{{{','.join(map(double_text, (a, b, c)))}}}"


def _equal(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= _EPSILON


def _line_through(one: Point, other: Point) -> str:
    """The line through two points, as line_construct() makes it. Raises 22P02 if they are equal."""
    same = [_equal(*pair) for pair in zip(one, other, strict=True)]
    if any(number != number for number in (*one, *other)):
        same = [left == right or (left != left and right != right) for left, right in zip(one, other, strict=True)]
        if not all(same):
            same = [False, False]
    if all(same):
        raise SqlError("22P02", "invalid line specification: must be two distinct points")
    if same[0]:
        return line_text(-1.0, 0.0, one[0])
    slope = 0.0 if same[1] else _divided(_minus(one[1], other[1]), _minus(one[0], other[0]))
    if math.isinf(slope):
        return line_text(-1.0, 0.0, one[0])
    if not slope:
        return line_text(0.0, -1.0, one[1])
    return line_text(slope, -1.0, _minus(one[1], _times(slope, one[0])) or 0.0)


def _minus(one: float, other: float) -> float:
    return _held(one - other, one, other)


def _times(one: float, other: float) -> float:
    return _held(one * other, one, other, not one or not other)


def _divided(one: float, other: float) -> float:
    return _held(one / other, one, other, not one or math.isinf(other))


def _held(result: float, one: float, other: float, may_be_zero: bool = True) -> float:
    """A result of two doubles. Raises 22003 for overflow and underflow (float8_mi() and similar)."""
    if math.isinf(result) and not (math.isinf(one) or math.isinf(other)):
        raise out_of_range("value out of range: overflow")
    if not result and not may_be_zero:
        raise out_of_range("value out of range: underflow")
    return result


def _circle(scanner: _Scanner) -> str:
    scanner.blanks()
    depth = 0
    if scanner.takes("<"):
        depth = 1
    elif scanner.sees("("):
        rest = scanner.text[scanner.place + 1 :].lstrip(_BLANKS)
        if rest.startswith("("):
            depth, scanner.place = 1, len(scanner.text) - len(rest)
    center = scanner.pair()
    scanner.takes(",")
    radius = scanner.number()
    if radius < 0:
        raise scanner.wrong()
    if depth:
        scanner.needs(")", ">")
        scanner.blanks()
    scanner.ends()
    return circle_text(center, radius)


def circle_text(center: Point, radius: float) -> str:
    """The text of a circle: its center and its radius."""
    return f"<{point_text(center)},{double_text(radius)}>"


def numbers_of(text: str) -> list[float]:
    """The doubles in a value's text, in order."""
    return [float(word) for word in re.split(r"[(){}\[\]<>,]+", text) if word]


def _reader(name: str, read: Callable[[_Scanner], str]) -> Callable[[str], str]:
    return lambda text: read(_Scanner(name, text))


READERS: Final[dict[str, Callable[[str], str]]] = {
    name: _reader(name, read)
    for name, read in (
        ("point", _point),
        ("lseg", _segment),
        ("box", _box),
        ("path", _path),
        ("polygon", _polygon),
        ("line", _line),
        ("circle", _circle),
    )
}
