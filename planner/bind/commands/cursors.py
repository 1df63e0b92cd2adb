"""Cursors in SQL: DECLARE, FETCH, MOVE and CLOSE.

Owns: which options go together (parse_cursor.c, transformDeclareCursorStmt). The server keeps the cursors and their
positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from pglast.enums import FetchDirection
from pglast.enums.parsenodes import (
    CURSOR_OPT_ASENSITIVE,
    CURSOR_OPT_BINARY,
    CURSOR_OPT_HOLD,
    CURSOR_OPT_INSENSITIVE,
    CURSOR_OPT_NO_SCROLL,
    CURSOR_OPT_SCROLL,
)

from catalog.values.errors import SqlError
from planner.bind.changes.current_of import current_rows
from planner.bind.queries.select import bind_query, into_of
from planner.bind.state.environment import Binding
from planner.statements.statement import CloseCursor, DeclareCursor, Fetch, Statement

_DIRECTIONS: Final[dict[Any, Literal["forward", "backward", "absolute", "relative"]]] = {
    FetchDirection.FETCH_FORWARD: "forward",
    FetchDirection.FETCH_BACKWARD: "backward",
    FetchDirection.FETCH_ABSOLUTE: "absolute",
    FetchDirection.FETCH_RELATIVE: "relative",
}
#: Options that go with no FOR UPDATE and the like.
_READ_ONLY: Final = (
    (CURSOR_OPT_HOLD, "CURSOR WITH HOLD", "Holdable", "0A000", "supported"),
    (CURSOR_OPT_SCROLL, "SCROLL CURSOR", "Scrollable", "0A000", "supported"),
    (CURSOR_OPT_INSENSITIVE, "INSENSITIVE CURSOR", "Insensitive", "42P11", "valid"),
)
#: How the grammar writes ALL.
_ALL: Final = 2**63 - 1


def _declare(binding: Binding, node: Any) -> Statement:
    options, query = node.options, node.query
    if options & CURSOR_OPT_SCROLL and options & CURSOR_OPT_NO_SCROLL:
        raise SqlError("42P11", "cannot specify both SCROLL and NO SCROLL")
    if options & CURSOR_OPT_ASENSITIVE and options & CURSOR_OPT_INSENSITIVE:
        raise SqlError("42P11", "cannot specify both ASENSITIVE and INSENSITIVE")
    if into_of(query) is not None:
        position = binding.position(query.intoClause.rel) if query.intoClause is not None else None
        raise SqlError("42601", "DECLARE CURSOR cannot use SELECT ... INTO", position=position)
    bound, table, key = current_rows(binding, bind_query(binding, query))
    scroll = True if options & CURSOR_OPT_SCROLL else False if options & CURSOR_OPT_NO_SCROLL else None
    if bound.locking is not None:
        _require_read_only(bound.locking.words, options)
        scroll = False
    hold, binary = bool(options & CURSOR_OPT_HOLD), bool(options & CURSOR_OPT_BINARY)
    return DeclareCursor(node.portalname, bound, binding.raw.text, scroll, hold, binary, table, key)


def _require_read_only(words: str, options: int) -> None:
    """What a cursor whose query locks rows may not be. Raises 0A000 and 42P11, of what PostgreSQL has not either."""
    for option, name, kind, state, verdict in _READ_ONLY:
        if options & option:
            message = f"DECLARE {name} ... {words} is not {verdict}"
            raise SqlError(state, message, f"{kind} cursors must be READ ONLY.")


def _fetch(binding: Binding, node: Any) -> Statement:
    count = None if abs(node.howMany) >= _ALL else int(node.howMany)
    return Fetch(node.portalname, _DIRECTIONS[node.direction], count, bool(node.ismove))


def _close(binding: Binding, node: Any) -> Statement:
    return CloseCursor(node.portalname)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "DeclareCursorStmt": _declare,
    "FetchStmt": _fetch,
    "ClosePortalStmt": _close,
}
