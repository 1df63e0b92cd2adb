"""What SET DateStyle takes: an output style, an order of input, or both; what is not said stays as it is.

Owns: check_datestyle() of PostgreSQL's variable.c. How values look in a style is ``protocol.values``, how a text is
read in an order ``catalog.values.times.timestamps``.
"""

from __future__ import annotations

from typing import Final

from catalog.values.errors import SqlError
from catalog.values.identifiers import split_list

DEFAULT: Final = "ISO, MDY"
_STYLES: Final = {"iso": "ISO", "sql": "SQL", "german": "German"}
_ORDERS: Final = {"ymd": "YMD", "dmy": "DMY", "mdy": "MDY", "us": "MDY"}


def date_style(name: str, value: str) -> str:
    """A value that is set where there was none before."""
    return changed(name, value, DEFAULT)


def changed(name: str, value: str, present: str) -> str:
    """The value after SET, as it is stored and shown. Raises 22023."""
    styles: list[str] = []
    orders: list[str] = []
    style, order = present.split(", ")
    try:
        words = [word.lower() for word in split_list(value)]
    except ValueError:
        raise _invalid(name, value, "List syntax is invalid.") from None
    for word in words:
        if (found := _style_of(word)) is not None:
            styles.append(found)
            order = "DMY" if found == "German" and not orders else order
        elif (found := _order_of(word)) is not None:
            orders.append(found)
        elif word == "default":
            default_style, default_order = DEFAULT.split(", ")
            style, order = default_style, default_order
        else:
            raise _invalid(name, value, f'Unrecognized key word: "{word}".')
    if len(set(styles)) > 1 or len(set(orders)) > 1:
        raise _invalid(name, value, 'Conflicting "datestyle" specifications.')
    return f"{styles[0] if styles else style}, {orders[0] if orders else order}"


def _style_of(word: str) -> str | None:
    return "Postgres" if word.startswith("postgres") else _STYLES.get(word)


def _order_of(word: str) -> str | None:
    return "DMY" if word.startswith("euro") else "MDY" if word.startswith("noneuro") else _ORDERS.get(word)


def _invalid(name: str, value: str, detail: str) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', detail)
