"""Statements in the server's log: which ones ``log_statement`` asks for, and how they are written there.

Owns: the class of each kind of statement, as PostgreSQL's GetCommandLogLevel has it, and the lines. A password that a
statement sets is not shown. Statements with a class of their own never take the ways around the parser (``express``,
``series``), so a session that logs more than definitions gives these ways up.

https://www.postgresql.org/docs/15/runtime-config-logging.html#GUC-LOG-STATEMENT
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from planner.parse import Raw, without_passwords

if TYPE_CHECKING:
    from planner.expression import Value
    from server.session import Session

logger = logging.getLogger(__name__)

_LEVELS: Final = ("none", "ddl", "mod", "all")
_DDL, _MOD, _ALL = 1, 2, 3
#: Nodes that define something, beside those whose names begin so.
_DEFINES: Final = re.compile(
    "(Create|Alter|Drop|Grant|Comment|SecLabel|Rename|Index|View|Define|CompositeType|Rule|RefreshMatView|Import"
    "|Reassign|Cluster).*Stmt"
)
_MODIFIES: Final = frozenset(("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "TruncateStmt"))
#: Nodes that are of the class of the statement within.
_WITHIN: Final = {"PrepareStmt": "query", "DeclareCursorStmt": "query"}


def logs(setting: str, above: str = "none") -> bool:
    """Whether a value of log_statement asks for more than another one does."""
    return setting != "none" and _LEVELS.index(setting) > _LEVELS.index(above)


def log_text(session: Session, text: str, raws: Sequence[Raw]) -> None:
    """A Query message, once it is parsed and before it runs."""
    if session.logs != "none" and any(_is_logged(session, raw.node) for raw in raws):
        _log(session, "statement", text)


def log_execution(session: Session, name: str, raw: Raw, values: Sequence[Value]) -> None:
    """An Execute message of a portal that has not run."""
    if session.logs != "none" and _is_logged(session, raw.node):
        _log(session, f"execute {name or '<unnamed>'}", raw.text, values)


def _log(session: Session, kind: str, text: str, values: Sequence[Value] = ()) -> None:
    template = "statement pid=%d user=%s kind=%s text=%s"
    arguments = (session.backend.process, session.user, kind, without_passwords(text))
    if values:
        logger.info(
            template + " parameters=%s", *arguments, [None if value is None else str(value) for value in values]
        )
    else:
        logger.info(template, *arguments)


def _is_logged(session: Session, node: Any) -> bool:
    return _level(session, node) <= _LEVELS.index(session.logs)


def _level(session: Session, node: Any) -> int:
    """The least level at which a raw statement is logged."""
    name = type(node).__name__
    if name in _MODIFIES or (name == "CopyStmt" and node.is_from):
        return _MOD
    if _DEFINES.fullmatch(name) or (name == "SelectStmt" and node.intoClause is not None):
        return _DDL
    if name in _WITHIN:
        return _level(session, getattr(node, _WITHIN[name]))
    if name == "ExplainStmt":
        analyzes = any(option.defname == "analyze" for option in node.options or ())
        return _level(session, node.query) if analyzes else _ALL
    if name == "ExecuteStmt" and (prepared := session.statements.get(node.name)) is not None:
        return _level(session, prepared.raw.node) if prepared.raw is not None else _ALL
    return _ALL
