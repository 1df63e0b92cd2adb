"""The names of types with their modifiers, as functions of the engine.

Owns: ``FUNCTIONS``: the result of format_type() for a type's name and a modifier (format_type.c, and the types'
typmodout functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from catalog.system.functions import NO_MODIFIER
from catalog.values.interval_fields import FIELD_RANGES, fields_text
from executor.embedded.functions.batches import Functions

_BPCHAR: Final = 1042
_FIELDS: Final = {mask: f" {fields_text(mask)}" for mask in FIELD_RANGES}
#: The interval modifier without a number of digits.
_ANY_DIGITS: Final = 0xFFFF


def _type_shown(head: str, tail: str, element: int, modifier: int) -> str:
    """A type's name: ``head``, the modifier's text, ``tail``. ``element`` is the type's oid or, for an array, the
    element type's."""
    if modifier == NO_MODIFIER:
        return head + tail
    if modifier < 0:
        return ("bpchar" if element == _BPCHAR else head) + tail
    written = _WRITTEN.get(element)
    return head + ("" if written is None else written(modifier)) + tail


def _length(modifier: int) -> str:
    return f"({modifier - 4})"


def _digits(modifier: int) -> str:
    return f"({modifier})"


def _precision(modifier: int) -> str:
    return f"({(modifier - 4) >> 16 & 0xFFFF},{(modifier - 4) & 0x7FF})"


def _interval(modifier: int) -> str:
    digits = modifier & _ANY_DIGITS
    return _FIELDS.get(modifier >> 16, "") + ("" if digits == _ANY_DIGITS else _digits(digits))


#: How modifiers are written, by the types' oids.
_WRITTEN: Final[Mapping[int, Callable[[int], str]]] = {
    **dict.fromkeys((_BPCHAR, 1043), _length),
    1700: _precision,
    **dict.fromkeys((1083, 1114, 1184, 1266, 1560, 1562), _digits),
    1186: _interval,
}
FUNCTIONS: Final[Functions] = {"type_shown": (_type_shown, "VARCHAR")}
