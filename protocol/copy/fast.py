"""COPY blocks parsed by pyarrow's CSV parser, where it agrees with PostgreSQL.

Owns: the decision which blocks those are, and two ways to read them: with the columns' types, or as strings that the
value codecs convert. Raises ``NotFast`` if the exact parser must decide; never accepts a value that PostgreSQL rejects.

Text that pyarrow accepts and PostgreSQL rejects or reads otherwise is found beforehand in the bytes (zero bytes, mixed
line ends, hexadecimal integers) or afterwards in the result (quotes inside a field, floats that are not finite).
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from msgspec import Struct

from catalog.values.types import MAX_PRECISION, SqlType
from protocol.compute import constant, pc
from protocol.copy.doubles import decimals_of, is_double
from protocol.copy.format import CopyFormat, CopyTarget
from protocol.copy.split import Block, count_byte
from protocol.copy.text import unescape
from protocol.values.codec import ColumnError, value_bytes, vector
from protocol.values.numbers.numeric_text import WORD_DIGITS
from protocol.values.registry import decode_text_column
from protocol.values.scales import scales_of_texts
from protocol.values.times.precision import fit_column

#: Types that pyarrow's CSV parser reads as PostgreSQL does; all others are read as strings.
_NATIVE: Final = frozenset(("int2", "int4", "int8", "float8", "numeric", "date", "bool"))
_INTEGERS: Final = frozenset(("int2", "int4", "int8"))
#: The byte order mark that some programs write before UTF-8 text.
_MARK: Final = b"\xef\xbb\xbf"
#: A possible positive exponent.
_EXPONENT: Final = re.compile(rb"[0-9.][eE]\+?[0-9]")
_FIRST_DAY: Final = -719_162  # 0001-01-01


class NotFast(Exception):
    """The exact parser must read the block."""


class FastParser(Struct, frozen=True):
    """pyarrow's options for COPYs with equal options and columns. Threads may parse concurrently."""

    target: CopyTarget
    format: CopyFormat
    parse_options: pacsv.ParseOptions
    typed: pacsv.ConvertOptions
    strings: pacsv.ConvertOptions

    def parse(self, block: Block) -> list[pa.Array]:
        """The columns of a block. Raises NotFast."""
        if not self._is_regular(block):
            raise NotFast
        columns = self._parse_typed(block) if self._is_typed(block) else None
        if columns is not None:
            return columns
        try:
            texts = [unescape(item) if self._escapes else item for item in self._read(block, self.strings)]
            return self._decoded(texts)
        except (pa.ArrowInvalid, ColumnError):
            raise NotFast from None

    @property
    def _escapes(self) -> bool:
        return self.format.format == "text"

    def _parse_typed(self, block: Block) -> list[pa.Array] | None:
        """The columns read with their types, if every value is in its usual form."""
        try:
            read = zip(self._read(block, self.typed), self.target.kinds, strict=True)
            found = [_of_double(column, type_) for column, type_ in read]
            columns = [column for column in found if column is not None]
            if len(columns) < len(found) or not self._is_trusted(columns, block):
                return None
            return self._decoded(columns)
        except (pa.ArrowInvalid, ColumnError):
            return None

    def _decoded(self, columns: list[pa.Array]) -> list[pa.Array]:
        """The columns in their types: those that were read as strings are converted."""
        if self.format.force_null or self.format.force_not_null:
            columns = [self._forced(column, place) for place, column in enumerate(columns)]
        values = [
            decode_text_column(column, type_, self.target.timezone)
            if column.type == pa.string()
            else fit_column(column, type_)
            for column, type_ in zip(columns, self.target.kinds, strict=True)
        ]
        types = self.target.types
        return values + [scales_of_texts(columns[place], types[place]) for place in self.target.scaled]

    def _forced(self, column: pa.Array, place: int) -> pa.Array:
        """Applies FORCE_NOT_NULL (the NULL string is an ordinary value) and FORCE_NULL (the NULL string is NULL even in
        quotes)."""
        null = constant(self.format.null)
        quoted = pc.equal(column, null) if place in self.format.force_null else None
        if place in self.format.force_not_null:
            column = column.fill_null(null)
        return column if quoted is None else pc.if_else(quoted.fill_null(False), constant(None), column)

    def _read(self, block: Block, convert_options: pacsv.ConvertOptions) -> list[pa.Array]:
        read_options = pacsv.ReadOptions(
            use_threads=False,
            block_size=len(block.data) + 1,
            column_names=[str(index) for index in range(len(self.target.types))],
        )
        source = pa.BufferReader(block.data)
        # Unlike this call, read_csv starts a thread each time and waits for the system to run it.
        with pacsv.open_csv(source, read_options, self.parse_options, convert_options) as reader:
            batches = reader.read_all().to_batches()
        columns: list[pa.Array] = (batches[0] if len(batches) == 1 else pa.concat_batches(batches)).columns
        reads_all = self.target.only is None
        are_suspect = not self._escapes and (not reads_all or self._keeps_quotes(columns))
        if are_suspect and not _quotes_are_regular(block.data, self.format):
            raise NotFast
        if len(self.target.types) > 1 and all(map(_may_be_empty, columns)) and _has_empty_line(block):
            raise NotFast
        if not reads_all and not _is_utf8(block.data):
            raise NotFast
        return columns

    def _keeps_quotes(self, columns: list[pa.Array]) -> bool:
        """Whether a value contains a quote.

        If none does, every quote opens at the beginning of a field and closes later, and both parsers agree on such
        fields.
        """
        quote = self.format.quote.encode()
        return any(quote in value_bytes(column).tobytes() for column in columns if column.type == pa.string())

    def _is_regular(self, block: Block) -> bool:
        """Whether both parsers agree on the block's lines and quotes."""
        data, end = block.data, block.end
        if b"\0" in data or data.startswith(_MARK):  # pyarrow drops it from the text
            return False
        if end != b"\n" or b"\r" in data:
            returns, newlines = count_byte(data, 13), count_byte(data, 10)
            if (returns, newlines) != _line_ends(data, end):
                return False
        if self._escapes:
            return not _escapes_structure(data, self.format.delimiter)
        quote = self.format.quote.encode()
        if quote not in data:
            return True
        return self.format.quote == self.format.escape and count_byte(data, quote[0]) % 2 == 0

    def _is_typed(self, block: Block) -> bool:
        """Whether reading with pyarrow's own conversions is worth a try."""
        if self._escapes and b"\\" in block.data and self.format.null != "\\N":
            return False
        integers = any(type_.name in _INTEGERS for type_ in self.target.kinds)
        return not (integers and _has_hexadecimal(block.data))

    def _is_trusted(self, columns: list[pa.Array], block: Block) -> bool:
        """Whether the result has no value that pyarrow may read otherwise than PostgreSQL."""
        if self._escapes and b"\\" in block.data:
            nulls = sum(column.null_count for column in columns)
            if nulls != count_byte(block.data, 0x5C):
                return False  # backslashes that are not part of NULL
        return all(
            _is_trusted_column(column, type_, block.data)
            for column, type_ in zip(columns, self.target.kinds, strict=True)
        )


def fast_parser(target: CopyTarget, format_: CopyFormat) -> FastParser:
    """A parser for COPYs in text or CSV format with these options and columns."""
    csv = format_.format == "csv"
    names = [str(index) for index in range(len(target.types))]
    types = dict(zip(names, map(_csv_type, target.types), strict=True))
    types |= {names[place]: pa.string() for place in (*target.scaled, *format_.force_null, *format_.force_not_null)}
    shared = {
        "include_columns": [names[place] for place in target.places],
        "null_values": [format_.null],
        "strings_can_be_null": True,
        "quoted_strings_can_be_null": False,
        "true_values": ["t", "true", "1", "T", "TRUE", "True"],
        "false_values": ["f", "false", "0", "F", "FALSE", "False"],
    }
    return FastParser(
        target,
        format_,
        pacsv.ParseOptions(
            delimiter=format_.delimiter,
            quote_char=format_.quote if csv else False,
            double_quote=csv,
            escape_char=False,
            newlines_in_values=csv,
            ignore_empty_lines=False,
        ),
        pacsv.ConvertOptions(column_types=types, **shared),
        pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), **shared),
    )


def _csv_type(type_: SqlType) -> pa.DataType:
    if is_double(type_):
        return pa.float64()
    if type_.name == "numeric" and type_.precision + type_.scale > MAX_PRECISION:
        return pa.string()  # digits beyond 128 bits would be lost unnoticed
    return type_.arrow if type_.name in _NATIVE else pa.string()


def _of_double(column: pa.Array, type_: SqlType) -> pa.Array | None:
    """A column of decimals that was read as doubles, converted; other columns as they are; None if the column must be
    read in another way."""
    return decimals_of(column, type_) if column.type == pa.float64() and type_.name == "numeric" else column


def _is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _may_be_empty(column: pa.Array) -> bool:
    return bool(column.null_count) or (column.type == pa.string() and pc.any(pc.equal(column, constant(""))).as_py())


def _has_empty_line(block: Block) -> bool:
    """Whether a line is empty: pyarrow reads it as a row of NULLs, while for PostgreSQL its second column is
    missing."""
    return block.data.startswith(block.end) or block.end * 2 in block.data


def _line_ends(data: bytes, end: bytes) -> tuple[int, int]:
    """The numbers of carriage returns and of newlines in the data if each of them is part of an ``end`` of line."""
    count = data.count(end)
    return (0 if end == b"\n" else count), (0 if end == b"\r" else count)


def _quotes_are_regular(data: bytes, format_: CopyFormat) -> bool:
    """Whether every quoted section is a whole field with its quotes doubled; pyarrow reads other sections
    differently."""
    quote = format_.quote.encode()
    if quote not in data:
        return True
    values = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(values == quote[0])
    if len(places) % 2:
        return False
    opens, closes = places[0::2], places[1::2]
    doubled = closes[:-1] + 1 == opens[1:]
    borders = np.zeros(256, bool)
    borders[[ord(format_.delimiter), 10, 13]] = True
    before = borders[values[opens - 1]]  # for the first byte, the last one: an end of line, if any
    before[0] |= opens[0] == 0
    before[1:] |= doubled
    after = borders[values[np.minimum(closes + 1, len(data) - 1)]]
    after[-1] |= closes[-1] == len(data) - 1
    after[:-1] |= doubled
    return bool(before.all() and after.all())


def _escapes_structure(data: bytes, delimiter: str) -> bool:
    """Whether a backslash of the text format may stand before a delimiter or an end of line."""
    if b"\\" not in data:
        return False
    return re.search(rb"(?<!\\)(?:\\\\)*+\\[\r\n" + re.escape(delimiter.encode()) + rb"]", data) is not None


#: The bytes "0" and "x", and the bit that makes a letter lower case.
_ZERO, _SMALL_X, _LOWER = np.uint8(0x30), np.uint8(0x78), np.uint8(0x20)


def _has_hexadecimal(data: bytes) -> bool:
    """Whether 0x or 0X occurs in the data."""
    if b"x" not in data and b"X" not in data:
        return False
    values = np.frombuffer(data, np.uint8)
    return bool(((values[:-1] == _ZERO) & ((values[1:] | _LOWER) == _SMALL_X)).any())


def _is_trusted_column(column: pa.Array, type_: SqlType, data: bytes) -> bool:
    if column.type == pa.string():
        return True
    if type_.name == "float8" and len(column):
        values = vector(column, "<f8")
        if not np.isfinite(values).all():
            return False
        # 1e-400 is read as zero here; PostgreSQL reports it as out of range.
        return (values != 0).all() or not (b"e-" in data or b"E-" in data)
    if type_.name == "date" and len(column):
        return bool(vector(column, "<i4").min() >= _FIRST_DAY)
    if type_.name == "numeric" and len(column) and not is_double(type_):
        if type_.precision > WORD_DIGITS and _EXPONENT.search(data) is not None:
            return False  # 128-bit decimals are affected too
        return _fits_precision(column, type_)
    return True


def _fits_precision(column: pa.Array, type_: SqlType) -> bool:
    """Whether no value has more digits than its type allows.

    pyarrow's CSV parser counts a number's digits as written, before it adds zeros for the scale: it accepts 1234.5 as
    numeric(5,2). So no value has more digits than precision and scale together.
    """
    limit = 10**type_.precision
    if type_.precision + type_.scale <= WORD_DIGITS:
        low = np.frombuffer(column.buffers()[1], "<i8")[2 * column.offset :: 2][: len(column)]
        return bool(low.max() < limit and low.min() > -limit)
    bounds = pc.min_max(column)
    largest, smallest = bounds["max"].as_py(), bounds["min"].as_py()
    return largest is None or max(largest.adjusted(), smallest.adjusted()) < type_.precision - type_.scale
