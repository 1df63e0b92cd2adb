"""PostgreSQL's eight lock modes, and which of them conflict.

https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-TABLES
"""

from __future__ import annotations

import enum
from typing import Final


class Mode(enum.IntEnum):
    """A mode; the numbers are the parser's for LOCK TABLE."""

    ACCESS_SHARE = 1
    ROW_SHARE = 2
    ROW_EXCLUSIVE = 3
    SHARE_UPDATE_EXCLUSIVE = 4
    SHARE = 5
    SHARE_ROW_EXCLUSIVE = 6
    EXCLUSIVE = 7
    ACCESS_EXCLUSIVE = 8

    @property
    def shown(self) -> str:
        """The mode's name in pg_locks."""
        return _SHOWN[self]


_SHOWN: Final = {mode: "".join(map(str.title, mode.name.split("_"))) + "Lock" for mode in Mode}

#: The modes that conflict with each mode.
CONFLICTS: Final[dict[Mode, frozenset[Mode]]] = {
    Mode(mode): frozenset(map(Mode, conflicting))
    for mode, conflicting in {
        1: (8,),
        2: (7, 8),
        3: (5, 6, 7, 8),
        4: (4, 5, 6, 7, 8),
        5: (3, 4, 6, 7, 8),
        6: (3, 4, 5, 6, 7, 8),
        7: (2, 3, 4, 5, 6, 7, 8),
        8: (1, 2, 3, 4, 5, 6, 7, 8),
    }.items()
}

#: For each mode, a bit for each conflicting mode: ``1 << mode``.
EXCLUDING: Final = tuple(sum(1 << other for other in CONFLICTS.get(Mode(mode), ())) if mode else 0 for mode in range(9))
