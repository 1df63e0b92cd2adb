"""Rows of files of JSON objects, one a line, as PostgreSQL's json_to_record makes them of each.

Owns: the split of lines into the texts of their columns' values (by msgspec, which checks the syntax of the whole
line), and what these stand for. A column's value is the last one of its key; JSON's null and a missing key are NULL. A
type reads the text of a string, and of any other value the text that the file has; json and jsonb take the value
itself. Blank lines are no rows. Names no file: errors have the line and the column.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.objects import ColumnDefinition
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from executor.files import plain_json
from executor.files.followed_folders import Owner
from executor.files.lenient_lines import Lines, Rejecting, is_lenient, lenient, told
from executor.files.parallel_parsing import parsed_ahead
from protocol.compute import constant, pc
from protocol.copy.format import CopyTarget
from protocol.copy.split import count_byte
from protocol.utf8 import decode_utf8
from protocol.values.codec import ColumnError
from protocol.values.registry import decode_text_column

#: Bytes of a portion, but for the rest of its last line: those that lie in a processor's cache are looked through
#: several times for little.
_PORTION: Final = 1 << 20
_NEWLINE: Final = ord("\n")
_BLANKS: Final = b" \t\r"
_NULL: Final = msgspec.Raw(b"null")
_NUL: Final = b"\\u0000"


def batches(
    path: str, owner: Owner, wanted: Sequence[ColumnDefinition], rejecting: Rejecting | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in its order, with the wanted columns. Raises PostgreSQL's errors, OSError."""
    reader = _Reader(owner, wanted)
    if is_lenient(owner):
        lines = Lines(reader.parse, partial(_of_column, owner), _single, _joined, _shown)
        parsed = parsed_ahead(_portions(path), lambda portion: lenient(portion, lines, owner, wanted))
        yield from told(parsed, rejecting)
        return
    for table in parsed_ahead(_portions(path), reader.parse):
        yield from table.to_batches()


class _Portion(Struct, frozen=True):
    """Whole lines without the end of the last one, and the number of the first one, from 1."""

    data: bytes
    first: int


def _of_column(owner: Owner, line: _Portion, column: ColumnDefinition) -> pa.Table:
    return _Reader(owner, (column,)).parse(line)


def _single(portion: _Portion) -> list[_Portion]:
    return [_Portion(line, number) for number, line in enumerate(portion.data.split(b"\n"), portion.first)]


def _joined(lines: Sequence[_Portion]) -> _Portion:
    return _Portion(b"\n".join(line.data for line in lines), lines[0].first)


def _shown(line: _Portion) -> tuple[int, bytes]:
    return line.first, line.data


def _portions(path: str) -> Iterator[_Portion]:
    first = 1
    with open(path, "rb") as file:
        while data := file.read(_PORTION):
            if not data.endswith(b"\n"):
                data += file.readline()
            yield _Portion(data.removesuffix(b"\n"), first)
            first += count_byte(data, _NEWLINE)


class _Reader:
    """What reads portions of one file. Safe for many threads."""

    def __init__(self, owner: Owner, wanted: Sequence[ColumnDefinition]) -> None:
        self._wanted = wanted
        self._target = CopyTarget(tuple(item.type for item in wanted), tuple(item.name for item in wanted), owner.name)
        self._schema = pa.schema([(item.name, item.type.arrow) for item in wanted])
        self._is_plain = plain_json.is_plain(wanted)

    def parse(self, portion: _Portion) -> pa.Table:
        """The rows of a portion. Raises PostgreSQL's errors."""
        lines = plain_json.object_lines(portion.data)
        if lines and self._is_plain:
            table = plain_json.read(portion.data, lines, self._wanted)
            if table is not None:
                return table
            self._is_plain = False  # what fails once fails again
        rows, numbers = _split(portion, lines, self._target)
        if not numbers:
            return self._schema.empty_table()
        columns = [_column(values, place, numbers, self._target) for place, values in enumerate(rows)]
        return pa.Table.from_arrays(columns, schema=self._schema)


class _Lines(Struct, frozen=True):
    """What takes some keys' values out of a line, or of many: ``get`` gives them of what is decoded."""

    one: Callable[[bytes], Any]
    many: Callable[[bytes], list[Any]]
    get: Callable[[Any], Sequence[msgspec.Raw]]


@lru_cache(maxsize=64)
def _lines(names: tuple[str, ...]) -> _Lines:
    """What reads the values of these keys."""
    if any(character in name for name in names for character in '"\\') or not all(map(str.isprintable, names)):
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(dict[str, msgspec.Raw])
        get: Callable[[Any], Any] = partial(_values, names)
    else:
        places = [f"f{place}" for place in range(len(names))]
        kinds = [(place, msgspec.Raw, _NULL) for place in places]
        record = msgspec.defstruct("record", kinds, rename=dict(zip(places, names, strict=True)), gc=False)
        decoder = msgspec.json.Decoder(record)
        get = attrgetter(*places) if len(places) > 1 else lambda line: (line.f0,)
    return _Lines(decoder.decode, decoder.decode_lines, get)


def _values(names: tuple[str, ...], line: dict[str, msgspec.Raw]) -> list[msgspec.Raw]:
    return [line.get(name, _NULL) for name in names]


def _split(portion: _Portion, count: int, target: CopyTarget) -> tuple[list[list[msgspec.Raw]], Sequence[int]]:
    """The values of each column, and the number of each row's line; ``count`` are the lines where each is as an object
    is, else 0. Raises 22021, 22P02, 22P04, 22P05, 54001."""
    lines = _lines(target.names)
    data, first = portion.data, portion.first
    if count and data.isascii() and b"\0" not in data and _NUL not in data:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            rows = lines.many(data)
            if len(rows) == count:
                return _columns(rows, lines), range(first, first + count)
    rows, numbers = [], []
    for number, line in enumerate(data.split(b"\n"), first):
        if not line or not line.strip(_BLANKS):
            continue
        try:
            if not line.isascii() or b"\0" in line or _NUL in line:
                _check(line)
            rows.append(lines.one(line))
        except (msgspec.DecodeError, RecursionError):
            raise _located(_error(line), number, line, target) from None
        except SqlError as error:
            raise _located(error, number, None, target) from None
        numbers.append(number)
    return _columns(rows, lines), numbers


def _columns(rows: list[Any], lines: _Lines) -> list[list[msgspec.Raw]]:
    return list(map(list, zip(*map(lines.get, rows), strict=True)))


def _check(line: bytes) -> None:
    """Raises 22021 where a line is no text, 22P05 where it has a character that no text has."""
    decode_utf8(line)
    if _NUL in line.replace(b"\\\\", b""):
        detail = "\\u0000 cannot be converted to text."
        raise SqlError("22P05", "unsupported Unicode escape sequence", detail)


def _error(line: bytes) -> SqlError:
    """Why a line is no record."""
    try:
        found = json.loads(line)
    except RecursionError:
        return SqlError("54001", "stack depth limit exceeded")
    except ValueError as error:
        return SqlError("22P02", "invalid input syntax for type json", str(error))
    if isinstance(found, dict):
        return SqlError(
            "22P02", "invalid input syntax for type json", "It contains half of a surrogate pair, NaN or Infinity."
        )
    kind = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(found), "a number")
    return SqlError("22P04", f"a line has {kind} where an object was expected", hint="Write one object per line.")


def _located(error: SqlError, number: int, line: bytes | None, target: CopyTarget) -> SqlError:
    where = target.line_error(error.sqlstate, error.message, number, line).where
    return SqlError(error.sqlstate, error.message, error.detail, error.hint, where=where)


# Values ---------------------------------------------------------------------------------------------------------------


def _column(values: list[msgspec.Raw], place: int, numbers: Sequence[int], target: CopyTarget) -> pa.Array:
    """A column of its values' JSON. Raises the error of the first that is wrong."""
    kind = target.types[place]
    texts = _texts(values, kind)
    try:
        return decode_text_column(texts, kind, target.timezone)
    except ColumnError as error:
        raise target.value_error(error.error, numbers[error.index], place, texts[error.index].as_py()) from None


def _texts(values: list[msgspec.Raw], kind: SqlType) -> pa.Array:
    """What a type's input function reads in each value's place."""
    written, firsts = _array(values)
    are_null = pa.array(firsts == ord("n"))
    texts = pc.if_else(are_null, constant(None), written)
    is_string = firsts == ord('"')
    if kind.name == "jsonb":
        return texts
    escaped = is_string & _flags(pc.match_substring(written, "\\"))
    if kind.name == "json":
        return _replaced(texts, escaped, lambda item: json.dumps(item, ensure_ascii=False))
    texts = pc.if_else(pa.array(is_string), pc.utf8_slice_codeunits(texts, 1, -1), texts)
    return _replaced(texts, escaped, str, quoted=True)


def _array(values: list[msgspec.Raw]) -> tuple[pa.Array, np.ndarray]:
    """The values' JSON, none of which has a line break, and the first byte of each."""
    data = np.frombuffer(b"\n".join(values) + b"\n", np.uint8)  # pyright: ignore[reportArgumentType]
    ends = np.flatnonzero(data == 10)
    lengths = np.diff(ends, prepend=-1) - 1
    starts = ends - lengths
    bounds = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    bare = np.delete(data, ends)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(bare)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers), data[starts]


def _flags(array: pa.Array) -> np.ndarray:
    return np.asarray(array).astype(bool)


def _replaced(texts: pa.Array, mask: np.ndarray, make: Callable[[Any], str], quoted: bool = False) -> pa.Array:
    """The texts with those of the mask, which are JSON (``quoted``: but for their quotes), made otherwise."""
    if not mask.any():
        return texts
    chosen = texts.filter(pa.array(mask)).to_pylist()
    written = '["' + '","'.join(chosen) + '"]' if quoted else f"[{','.join(chosen)}]"
    found = msgspec.json.decode(written)
    return pc.replace_with_mask(texts, pa.array(mask), pa.array([make(item) for item in found], pa.string()))
