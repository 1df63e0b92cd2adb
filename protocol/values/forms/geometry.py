"""Geometric types in binary: doubles; before them, for a path, whether it is closed, and where needed the number of
points."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.forms.geometry import Point, box_text, circle_text, line_text, numbers_of, path_text, point_text
from protocol.values.codec import Codec
from protocol.values.forms.form_codec import Binary, exactly, formed_codec, short


def _packed(text: str) -> bytes:
    numbers = numbers_of(text)
    return pack(f">{len(numbers)}d", *numbers)


def _write_polygon(text: str) -> bytes:
    packed = _packed(text)
    return (len(packed) // 16).to_bytes(4, "big") + packed


def _write_path(text: str) -> bytes:
    return bytes((text.startswith("("),)) + _write_polygon(text)


def _points(data: bytes) -> list[Point]:
    return list(_pairs(unpack(f">{len(data) // 8}d", data)))


def _pairs(numbers: tuple[float, ...]) -> list[Point]:
    return [(numbers[place], numbers[place + 1]) for place in range(0, len(numbers), 2)]


def _read_many(name: str, data: bytes) -> list[Point]:
    """The number of points, then the points. Raises 22P03 and 08P01."""
    if len(data) < 4:
        raise short()
    count = int.from_bytes(data[:4], "big", signed=True)
    if count <= 0:
        raise SqlError("22P03", f'invalid number of points in external "{name}" value')
    return _points(exactly(data[4:], 16 * count))


def _read_path(data: bytes) -> str:
    if not data:
        raise short()
    return path_text(_read_many("path", data[1:]), data[0] != 0)


def _read_circle(data: bytes) -> str:
    x, y, radius = unpack(">3d", exactly(data, 24))
    if radius < 0:
        raise SqlError("22P03", 'invalid radius in external "circle" value')
    return circle_text((x, y), radius)


def _read_line(data: bytes) -> str:
    a, b, c = unpack(">3d", exactly(data, 24))
    return line_text(a, b, c, "22P03")


def _fixed(size: int, shown: Callable[[list[Point]], str]) -> tuple[Callable[[str], bytes], Callable[[bytes], str]]:
    """The binary form of a type with a fixed number of points."""
    return _packed, lambda data: shown(_points(exactly(data, size)))


_BINARY: Final[Binary] = {
    "point": _fixed(16, lambda points: point_text(points[0])),
    "lseg": _fixed(32, lambda points: path_text(points, False)),
    "box": _fixed(32, lambda points: box_text(*points)),
    "path": (_write_path, _read_path),
    "polygon": (_write_polygon, lambda data: path_text(_read_many("polygon", data), True)),
    "line": (_packed, _read_line),
    "circle": (_packed, _read_circle),
}
CODECS: Final[dict[str, Codec]] = {name: formed_codec(name, _BINARY) for name in _BINARY}
