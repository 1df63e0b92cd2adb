"""The names of errors' conditions in PL/pgSQL: in handlers and in RAISE.

Owns: what a name or SQLSTATE 'state' means. The names are PostgreSQL's own (errcodes.txt), of which some have several
states: RAISE takes the first, a handler any.
https://www.postgresql.org/docs/15/errcodes-appendix.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from catalog.postgres import rows
from catalog.values.errors import SqlError

#: The condition of a handler that takes every error; RAISE knows no such one.
_OTHERS: Final = "others"
#: What ends the state of a whole class.
_CLASS: Final = "000"
_SUCCESS: Final = "00000"


@cache
def _conditions() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in rows("conditions"):
        name = str(row["name"])
        found[name] = (*found.get(name, ()), str(row["state"]))
    return found


def state_of(name: str) -> str:
    """The SQLSTATE that RAISE gives an error by a condition; '' for success, which is what its level has. Raises 42704
    for a name of none."""
    if _is_state(name):
        return "" if name == _SUCCESS else name
    if name in _conditions():
        return _conditions()[name][0]
    raise _unknown(name)


def states_of(name: str) -> tuple[str, ...]:
    """The beginnings of the SQLSTATEs that a handler's condition takes. Raises 42704 for a name of none."""
    if name == _OTHERS:
        return ("",)
    states = (name,) if _is_state(name) else _conditions().get(name)
    if states is None:
        raise _unknown(name)
    return tuple(state.removesuffix(_CLASS) for state in states)


def _is_state(name: str) -> bool:
    return len(name) == 5 and name.isascii() and name.isalnum() and name == name.upper()


def _unknown(name: str) -> SqlError:
    return SqlError("42704", f'unrecognized exception condition "{name}"')
