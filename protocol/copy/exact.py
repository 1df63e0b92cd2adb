"""COPY blocks parsed by PostgreSQL's own rules, line by line: slow, but exact.

Owns: the splitting of lines into fields (CopyReadLine, CopyReadAttributesText, CopyReadAttributesCSV) and the order in
which errors are found: by line, and within a line by column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from protocol.copy.format import CopyFormat, CopyTarget
from protocol.copy.split import Block
from protocol.copy.text import unescape_value
from protocol.utf8 import decode_utf8
from protocol.values.codec import ColumnError
from protocol.values.registry import decode_text_column
from protocol.values.scales import scales_of_texts


class _Line(Struct, frozen=True):
    """One row's text. ``number`` is the number of the row's last line; ends of lines within quotes count, as in
    PostgreSQL.

    (PostgreSQL does not count them in the first row, as it does not yet know there how lines end; Millstream does.)
    """

    number: int
    raw: bytes
    fields: list[str | None]


class _LineError(Exception):
    """A line that cannot be split into fields."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error)
        self.error = error


def parse_exactly(block: Block, target: CopyTarget, format_: CopyFormat) -> list[pa.Array]:
    """The columns of a block. Raises PostgreSQL's error with its context line."""
    lines: list[_Line] = []
    failure: SqlError | None = None
    split = _csv_lines if format_.format == "csv" else _text_lines
    try:
        for line in split(block, target, format_):
            if len(line.fields) > len(target.types):
                message = "extra data after last expected column"
                raise _LineError(target.line_error("22P04", message, line.number, line.raw))
            lines.append(_forced(line, format_))
            if len(line.fields) < len(target.types):
                message = f'missing data for column "{target.names[len(line.fields)]}"'
                raise _LineError(target.line_error("22P04", message, line.number, line.raw))
    except _LineError as error:
        failure = error.error
    columns = _decode(lines, target)
    if failure is not None:
        raise failure
    return columns


def check_header(block: Block, target: CopyTarget, format_: CopyFormat) -> None:
    """HEADER MATCH: the first line must hold exactly the columns' names. Raises 22P04."""
    split = _csv_lines if format_.format == "csv" else _text_lines
    try:
        line = next(split(block, target, format_), _Line(1, b"", [""]))
    except _LineError as error:
        raise error.error from None
    if len(line.fields) != len(target.names):
        message = f"wrong number of fields in header line: got {len(line.fields)}, expected {len(target.names)}"
        raise target.line_error("22P04", message, 1, line.raw)
    for place, (found, name) in enumerate(zip(line.fields, target.names, strict=True), 1):
        if found != name:
            got = f'null value ("{format_.null}")' if found is None else f'"{found}"'
            message = f'column name mismatch in header line field {place}: got {got}, expected "{name}"'
            raise target.line_error("22P04", message, 1, line.raw)


def line_of(block: Block, row: int, target: CopyTarget, format_: CopyFormat) -> tuple[int, bytes]:
    """The number and the text of the line with the block's row ``row``, from 0. All rows must be readable."""
    split = _csv_lines if format_.format == "csv" else _text_lines
    line = next(islice(split(block, target, format_), row, None))
    return line.number, line.raw


def _forced(line: _Line, format_: CopyFormat) -> _Line:
    """Applies FORCE_NOT_NULL (the NULL string is an ordinary value) and FORCE_NULL (the NULL string is NULL even in
    quotes)."""
    if not format_.force_not_null and not format_.force_null:
        return line
    fields = list(line.fields)
    for place, value in enumerate(line.fields):
        if value is None and place in format_.force_not_null:
            fields[place] = format_.null
        elif value == format_.null and place in format_.force_null:
            fields[place] = None
    return replace(line, fields=fields)


def _decode(lines: list[_Line], target: CopyTarget) -> list[pa.Array]:
    """The columns of all lines; the last line may be short. Raises the error of the first invalid value by line."""
    columns: list[pa.Array] = []
    scales: list[pa.Array] = []
    first: tuple[int, int, SqlError] | None = None
    for column in target.places:
        type_ = target.types[column]
        texts = pa.array([line.fields[column] for line in lines if len(line.fields) > column], pa.string())
        try:
            columns.append(decode_text_column(texts, type_, target.timezone))
            scales += [scales_of_texts(texts, type_)] if column in target.scaled else []
        except ColumnError as error:
            if first is None or error.index < first[0]:
                first = (error.index, column, error.error)
    if first is None:
        return columns + scales
    row, column, cause = first
    raise target.value_error(cause, lines[row].number, column, lines[row].fields[column])


def _decoded(raw: bytes, number: int, target: CopyTarget) -> str:
    try:
        return decode_utf8(raw)
    except SqlError as error:
        raise _LineError(target.line_error(error.sqlstate, error.message, number)) from None


def _text_lines(block: Block, target: CopyTarget, format_: CopyFormat) -> Iterator[_Line]:
    delimiter, null = re.escape(format_.delimiter.encode()), format_.null.encode()
    stop = re.compile(rb"((?:[^\\\r\n]++|\\.)*+)(\r\n|\r|\n|\\?\Z)", re.DOTALL)
    field = re.compile(rb"((?:[^\\" + delimiter + rb"]++|\\.)*+)(" + delimiter + rb"|\\?\Z)", re.DOTALL)
    position, number = 0, block.line - 1
    while position < len(block.data):
        match = stop.match(block.data, position)
        assert match is not None
        raw, position = match[1], match.end()
        number += 1
        _check_end(match[2], block.end, number, target, format_)
        _decoded(raw, number, target)
        fields: list[str | None] = []
        start = 0
        while True:
            piece = field.match(raw, start)
            assert piece is not None
            value, start = piece[1], piece.end()
            fields.append(None if value == null else _decoded(unescape_value(value), number, target))
            if not piece[2] or piece[2] == b"\\":
                break
        yield _Line(number, raw, fields)


def _check_end(found: bytes, end: bytes, number: int, target: CopyTarget, format_: CopyFormat) -> None:
    """Checks that a line ends with the same characters as the first one."""
    if found in (end, b"", b"\\"):
        return
    csv = format_.format == "csv"
    name, escape = ("newline", '"\\n"') if found == b"\n" else ("carriage return", '"\\r"')
    error = target.line_error("22P04", f"{'unquoted' if csv else 'literal'} {name} found in data", number)
    error.hint = f"Use {'quoted CSV field' if csv else escape} to represent {name}."
    raise _LineError(error)


def _csv_lines(block: Block, target: CopyTarget, format_: CopyFormat) -> Iterator[_Line]:
    grammar = _CsvGrammar(format_)
    data, delimiter = block.data, format_.delimiter.encode()
    position, number = 0, block.line - 1
    while position < len(data):
        start, separator = position, delimiter
        pieces: list[bytes] = []
        number += 1
        while separator == delimiter:
            match = grammar.field.match(data, position)
            assert match is not None
            number += match[1].count(block.end[-1:])
            if match["open"] is not None:
                raise _LineError(target.line_error("22P04", "unterminated CSV quoted field", number, data[start:]))
            pieces.append(match[1])
            position, separator = match.end(), match["end"]
        raw = data[start : position - len(separator)]
        _check_end(separator, block.end, number, target, format_)
        _decoded(raw, number, target)
        values = [grammar.value(piece) for piece in pieces]
        yield _Line(number, raw, [None if value is None else _decoded(value, number, target) for value in values])


class _CsvGrammar:
    """Regular expressions of a field (bare and quoted pieces, then what ends it) for one COPY's characters."""

    def __init__(self, format_: CopyFormat) -> None:
        quote, escape = re.escape(format_.quote.encode()), re.escape(format_.escape.encode())
        delimiter = re.escape(format_.delimiter.encode())
        body = self._body(format_)
        section = rb"%b%b(?:%b|(?P<open>\Z))" % (quote, body, quote)
        plain = rb"[^%b%b\r\n]" % (quote, delimiter)
        self.field = re.compile(rb"((?:%b++|%b)*+)(?P<end>%b|\r\n|\r|\n|\Z)" % (plain, section, delimiter), re.DOTALL)
        self._quoted = re.compile(rb"%b(%b)%b" % (quote, body, quote), re.DOTALL)
        self._escaped = re.compile(rb"%b([%b%b])" % (escape, quote, escape))
        self._quote = format_.quote.encode()
        self._null = format_.null.encode()

    @staticmethod
    def _body(format_: CopyFormat) -> bytes:
        """The text between quotes."""
        quote, escape = re.escape(format_.quote.encode()), re.escape(format_.escape.encode())
        if quote == escape:
            return rb"(?:[^%b]++|%b%b)*+" % (quote, quote, quote)
        return rb"(?:[^%b%b]++|%b[%b%b]?)*+" % (quote, escape, escape, quote, escape)

    def value(self, raw: bytes) -> bytes | None:
        """The value of a field's text."""
        if raw == self._null:
            return None
        if self._quote not in raw:
            return raw
        return self._quoted.sub(lambda match: self._escaped.sub(rb"\1", match[1]), raw)
