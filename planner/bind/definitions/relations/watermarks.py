"""Options about event time: watermark of a stream, retention and emit of a view.

Owns: their texts. A watermark is a column of the stream, or a column less a constant interval::

    OPTIONS (watermark 'ts - interval ''5 seconds''')        WITH (retention = '1 hour', emit = 'final')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from catalog.objects import ColumnDefinition, Stream, View
from catalog.values.errors import SqlError, unsupported
from catalog.values.times.intervals import parse_interval
from planner.algebra.event_time import Keeping, Watermark, microseconds, span
from planner.algebra.nodes import Call, Column, ColumnRef, Literal, Scalar
from planner.bind.binder import bind_expression
from planner.bind.scalars.stored_expressions import is_expression
from planner.bind.state.environment import Binding

#: Microseconds that added to the times of a window leave a time that both engines know: a thousand years.
_LONGEST: Final = 365_250 * 86_400_000_000
_FORM: Final = "Write a timestamp column of the stream, or one less a constant interval: ts - interval '5 seconds'."


def bind_watermark(binding: Binding, text: str, columns: Sequence[ColumnDefinition], node: Any = None) -> Watermark:
    """A stream's watermark. Raises 22023 for what is none."""
    known = [Column(-1 - index, column.name, column.type) for index, column in enumerate(columns)]
    try:
        scalar = bind_expression(text, known, binding.context, what="watermark") if is_expression(text) else None
        found = None if scalar is None else _watermark(scalar)
    except SqlError as error:
        error.position = binding.position(node)
        raise
    if found is None:
        message = f'invalid value for option "watermark": "{text}"'
        raise SqlError("22023", message, hint=_FORM, position=binding.position(node))
    return found


def _watermark(scalar: Scalar) -> Watermark | None:
    delay = 0
    if isinstance(scalar, Call) and scalar.function == "sub" and len(scalar.arguments) == 2:
        scalar, length = scalar.arguments
        if not isinstance(length, Literal) or not isinstance(length.value, tuple) or length.value[0]:
            return None
        delay = microseconds(length)
    if (
        not isinstance(scalar, ColumnRef)
        or scalar.type.name not in ("timestamp", "timestamptz")
        or not 0 <= delay <= _LONGEST
    ):
        return None
    return Watermark(scalar.column.name, delay)


def bind_length(text: str, name: str, position: int | None) -> int:
    """An option's interval in microseconds. Raises 22007, 22023 and 0A000."""
    try:
        value = parse_interval(text)
    except SqlError as error:
        error.position = position
        raise
    if value[0]:
        raise unsupported(f"{name} of months or years", "Use days and shorter units.", position)
    length = span(value)
    if not 0 <= length <= _LONGEST:
        raise SqlError("22023", f'invalid value for option "{name}": "{text}"', position=position)
    return length


def keeps_windows(options: Mapping[str, str]) -> bool:
    """Whether a view's options say which of its groups it shows."""
    return "retention" in options or options.get("emit") == "final"


def keeping_of(binding: Binding, options: Mapping[str, str], continuous: bool) -> Keeping | None:
    """What a view's options say of its windows. Raises 55000 where a stream has no watermark."""
    if not keeps_windows(options):
        return None
    retention = options.get("retention")
    final = options.get("emit") == "final"
    name = "emit" if retention is None else "retention"
    if not continuous:
        raise unsupported(f"{name} of a view that reads no stream", "Leave it out: such a view keeps nothing.")
    watermarks = watermarks_of(binding)
    for stream in _streams(binding):
        if stream.oid not in watermarks:
            hint = "Create the stream with OPTIONS (watermark 'column - interval ''5 seconds''')."
            raise SqlError("55000", f'stream "{stream.name}" has no watermark, which {name} needs', hint=hint)
    return Keeping(watermarks, None if retention is None else bind_length(retention, "retention", None), final)


def watermarks_of(binding: Binding) -> dict[int, Watermark]:
    """The watermarks of the streams that a query reads, by oid, as far as they have one."""
    found = ((stream, stream.option("watermark")) for stream in _streams(binding))
    return {stream.oid: bind_watermark(binding, text, stream.columns) for stream, text in found if text}


def _streams(binding: Binding) -> list[Stream]:
    found = (binding.context.catalog.objects.get(oid) for oid in binding.depends_on)
    return [item for item in found if isinstance(item, Stream)]


def in_use(stream: Stream, view: View) -> SqlError:
    """The error where a view keeps rows by the watermark that a stream had at its creation."""
    message = f"cannot alter the watermark of foreign table {stream.name} because other objects depend on it"
    detail = f"view {view.name} depends on the watermark of foreign table {stream.name}"
    return SqlError("2BP01", message, detail, "Drop the view first, and create it again.")
