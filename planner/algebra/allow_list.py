"""The functions that a relation from a file or a socket may call; its reader checks them before anything runs.

Owns: the allow-list of calls, and the check of time zones. ``serialize`` has the list of node classes.
"""

from __future__ import annotations

from typing import Final

from catalog.values.errors import SqlError
from catalog.values.times.zones import session_zone
from planner.algebra.functions import AGGREGATES, DRAWN_FUNCTIONS, FUNCTIONS, SESSION_FUNCTIONS, WINDOW_FUNCTIONS
from planner.algebra.nodes import AggregateCall, Call, InZone, WindowCall
from planner.algebra.partial_aggregates import FINALS
from planner.algebra.walk import Node

#: But for what differs from call to call.
_CALLED: Final = (FUNCTIONS.keys() | FINALS) - DRAWN_FUNCTIONS - SESSION_FUNCTIONS


def check_call(node: Node) -> None:
    """Raises ValueError for a call of what no stored plan calls, and for a time zone that no session has."""
    match node:
        case InZone(zone=name):
            require_zone(name)
        case Call(function=name) if name not in _CALLED:
            raise ValueError(f"it calls {name}()")
        case AggregateCall(function=name) if name not in AGGREGATES:
            raise ValueError(f"it calls {name}()")
        case WindowCall(function=name) if name not in AGGREGATES | WINDOW_FUNCTIONS:
            raise ValueError(f"it calls {name}()")
        case _:
            pass


def require_zone(name: str) -> None:
    """Raises ValueError for what is no session's time zone."""
    try:
        session_zone(name)
    except SqlError as error:
        raise ValueError(error.message) from error
