"""The names of error conditions in PL/pgSQL, for handlers and for RAISE.

Owns: the SQLSTATEs of a name or of SQLSTATE 'state'. The names are PostgreSQL's (errcodes.txt). Some have several
states: RAISE takes the first, a handler accepts any. https://www.postgresql.org/docs/15/errcodes-appendix.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from catalog.postgres import rows
from catalog.values.errors import SqlError

#: The condition of a handler for every error; RAISE does not accept it.
_OTHERS: Final = "others"
#: The end of a state that stands for its whole class.
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
    """The SQLSTATE that RAISE gives an error with this condition; '' for success, whose state follows from RAISE's
    level. Raises 42704 for an unknown name."""
    if _is_state(name):
        return "" if name == _SUCCESS else name
    if name in _conditions():
        return _conditions()[name][0]
    raise _unknown(name)


def states_of(name: str) -> tuple[str, ...]:
    """The prefixes of the SQLSTATEs that a handler's condition accepts. Raises 42704 for an unknown name."""
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
