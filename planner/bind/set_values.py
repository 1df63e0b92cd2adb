"""Values that SET is given, as one text."""

from __future__ import annotations

from typing import Any, Final

from catalog.errors import unsupported
from catalog.names import join_names

#: Settings whose values are lists of names.
_LISTS: Final = ("search_path", "temp_tablespaces")


def set_text(node: Any) -> str:
    """What SET name TO sets. Raises 0A000."""
    values = [_value(item) for item in node.args]
    return join_names(values) if node.name.lower() in _LISTS or len(values) > 1 else values[0]


def _value(node: Any) -> str:
    """One value of SET: a constant, or an identifier that the grammar made one."""
    if type(node).__name__ != "A_Const":
        raise unsupported("SET TIME ZONE INTERVAL", "Name the zone.")
    value = node.val
    match type(value).__name__:
        case "String":
            return str(value.sval)
        case "Integer":
            return str(value.ival)
        case "Boolean":
            return "on" if value.boolval else "off"
        case _:
            return str(value.fval)
