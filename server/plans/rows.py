"""Between Arrow and messages: RowDescription, DataRows, and the parameters of Bind.

Owns: the choice of format per column. The encodings themselves are protocol's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.nested_texts import split_array
from catalog.values.types import NAMED_OIDS, UNKNOWN, SqlType, shaped
from executor.printing.literals import literal_value
from planner.algebra.nodes import Literal, Value
from planner.bind.conversion.named_oids import oid_named
from planner.bind.state.context import Context
from planner.statements.statement import Output
from protocol import datarow, encoder
from protocol.messages import Bind
from protocol.values.registry import TEXT_FORMAT, decode_value, says_shape
from server.plans.planning import Bounded, Surroundings

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.settings.settings import Settings

_DESCRIPTIONS: Final = 4096


def column_formats(formats: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """The format of each column: none given means text, one is for all."""
    if not formats:
        return (TEXT_FORMAT,) * columns
    return formats * columns if len(formats) == 1 else formats


def describe_rows(outputs: Sequence[Output], formats: tuple[int, ...]) -> bytes:
    """RowDescription."""
    fields = [
        encoder.FieldDescription(
            item.name,
            item.type.oid,
            item.type.length,
            item.typmod,
            item.table,
            item.attribute,
            form,
        )
        for item, form in zip(outputs, column_formats(formats, len(outputs)), strict=True)
    ]
    return encoder.row_description(fields)


class Descriptions:
    """RowDescriptions that are kept, since drivers and repeated texts ask for them each time.

    A description follows from columns and formats alone, and these are its key: what a text returns in one session says
    nothing of another's cursor or prepared statement. Columns are known by identity, since hashing many is slow.
    """

    def __init__(self) -> None:
        self._known: Bounded[tuple[tuple[Output, ...], bytes]] = Bounded(_DESCRIPTIONS)

    def of(self, outputs: tuple[Output, ...], formats: tuple[int, ...]) -> bytes:
        """The RowDescription of columns in some formats."""
        key = (id(outputs), formats)
        known = self._known.get(key)
        if known is None or known[0] is not outputs:
            known = outputs, describe_rows(outputs, formats)
            self._known.put(key, known)
        return known[1]


def encode_rows(batch: pa.RecordBatch, types: tuple[SqlType, ...], formats: tuple[int, ...], time_zone: str) -> bytes:
    """DataRows of a whole batch."""
    return datarow.encode_rows(batch, types, formats, time_zone).data


#: The names of some oids of a type such as regclass.
Names = Callable[[str, Iterable[int]], dict[int, str]]


def shown_by_name(
    batch: pa.RecordBatch, types: tuple[SqlType, ...], formats: tuple[int, ...], names: Names
) -> pa.RecordBatch:
    """A batch with the names of oids such as regclass where the client gets text."""
    columns = list(batch.columns)
    for place, (kind, form) in enumerate(zip(types, column_formats(formats, len(types)), strict=True)):
        if not is_named(kind) or form != TEXT_FORMAT:
            continue
        array = columns[place]
        if kind.element is None:
            columns[place] = _names_of(array, kind, names)
        else:
            texts = iter(_names_of(array.flatten(), kind.element, names).to_pylist())
            lists = [None if size is None else list(islice(texts, size)) for size in array.value_lengths().to_pylist()]
            columns[place] = pa.array(lists, pa.list_(pa.string()))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def is_named(kind: SqlType) -> bool:
    """Whether values of a type are oids, or arrays of such, that are shown by name."""
    return (kind if kind.element is None or kind.name != "array" else kind.element).name in NAMED_OIDS


def _names_of(numbers: pa.Array, kind: SqlType, names: Names) -> pa.Array:
    found = numbers.to_pylist()
    known = names(kind.name, (number for number in found if number is not None))
    return pa.array([None if item is None else known[item] for item in found], pa.string())


class Decoding(Protocol):
    """The part of a session on which the values of Bind depend."""

    connection: Connection
    settings: Settings

    @property
    def surroundings(self) -> Surroundings:
        """What a statement is bound against now."""
        ...


def decode_parameters(message: Bind, types: tuple[SqlType, ...], session: Decoding) -> tuple[Value, ...]:
    """The values of Bind's parameters. Raises what is wrong with one, saying which."""
    formats = column_formats(message.parameter_formats, len(types))
    time_zone, recoder = session.settings.style, session.connection.transcoder
    values: list[Value] = []
    for index, data in enumerate(message.parameters):
        if data is None:
            values.append(None)
            continue
        try:
            if recoder is not None:
                data = recoder.given(data, types[index], formats[index] == TEXT_FORMAT)
            if is_named(types[index]) and formats[index] == TEXT_FORMAT:
                values.append(oids_named(session.surroundings.context(), bytes(data).decode(), types[index]))
            else:
                values.append(decode_value(data, types[index], formats[index], time_zone))
        except SqlError as error:
            place = (
                f'portal "{message.portal}" parameter ${index + 1}'
                if message.portal
                else f"unnamed portal parameter ${index + 1}"
            )
            error.where = error.where or place
            raise
    return tuple(values)


def oids_named(context: Context, text: str, kind: SqlType) -> Value:
    """The oid of a name, or those of an array's. Raises 42P01 and the like for what there is not."""
    if kind.element is None:
        return oid_named(context, text, kind.name)
    name = kind.element.name
    return tuple(None if item is None else oid_named(context, item, name) for item in split_array(text))


def with_shapes(message: Bind, types: tuple[SqlType, ...]) -> tuple[SqlType, ...] | None:
    """The parameters' types where some are arrays whose values say dimensions or bounds; else None."""
    if not any(kind.name == "array" for kind in types) or len(types) != len(message.parameters):
        return None
    formats = column_formats(message.parameter_formats, len(types))
    kinds = tuple(
        shaped(kind.element) if kind.name == "array" and kind.element and data and says_shape(data, form) else kind
        for kind, data, form in zip(types, message.parameters, formats, strict=True)
    )
    return None if kinds == types else kinds


def literal_values(literals: Sequence[Literal], types: tuple[SqlType, ...], time_zone: str) -> tuple[Value, ...]:
    """Literals of a text as values of the types that binding gave them. Raises for one that is no such value."""
    values: list[Value] = []
    for literal, kind in zip(literals, types, strict=True):
        value = literal.value
        if literal.type == UNKNOWN and isinstance(value, str):
            value = decode_value(value.encode(), kind, TEXT_FORMAT, time_zone)
        values.append(value)
    return tuple(values)


def sent_value(scalar: pa.Scalar, kind: SqlType) -> Value:
    """A value of a result as a parameter's: a numeric comes as text where its decimals are its own, and of a bpchar the
    blanks that do not count go."""
    value = literal_value(scalar)
    if kind.name == "bpchar" and isinstance(value, str):
        return value.rstrip(" ")
    return Decimal(value) if kind.name == "numeric" and isinstance(value, str) else value
