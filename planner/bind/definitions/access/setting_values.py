"""Values of SET as one text. A time zone given as an interval becomes the hours east of Greenwich."""

from __future__ import annotations

from typing import Any, Final

from catalog.values.errors import SqlError
from catalog.values.identifiers import join_names
from catalog.values.times.intervals import parse_interval

#: Settings whose values are lists of names, and of words, which need no quotes.
_LISTS: Final = ("search_path", "temp_tablespaces")
_WORDS: Final = ("datestyle", "log_destination", "synchronous_standby_names", "wal_consistency_checking")
_HOUR: Final = 3_600_000_000


def set_text(node: Any) -> str:
    """What SET name TO sets. Raises 22023."""
    values = [_value(item) for item in node.args]
    if node.name.lower() in _LISTS:
        return join_names(values)
    if node.name.lower() in _WORDS:
        return ", ".join(values)
    if len(values) > 1:
        raise SqlError("22023", f"SET {node.name} takes only one argument")
    return values[0]


def _value(node: Any) -> str:
    """One value of SET: a constant, or an identifier that the grammar made one."""
    if type(node).__name__ != "A_Const":
        return _hours(node.arg.val.sval)
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


def _hours(text: str) -> str:
    """The interval of SET TIME ZONE INTERVAL, in hours. Raises 22023."""
    months, days, microseconds = parse_interval(text)
    for unit, amount in (("months", months), ("days", days)):
        if amount:
            raise SqlError(
                "22023", 'invalid value for parameter "TimeZone"', f"Cannot specify {unit} in time zone interval."
            )
    return f"{microseconds / _HOUR:.15g}"
