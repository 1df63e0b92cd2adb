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
from typing import TYPE_CHECKING, Any, Final, Protocol

from planner.parse.parser import Raw, without_passwords

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.algebra.nodes import Value

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


class Level(Protocol):
    """Which statements a session logs."""

    @property
    def logs(self) -> str:
        """Its log_statement."""
        ...


class Process(Protocol):
    """A session's process, by its number."""

    @property
    def process(self) -> int:
        """The number."""
        ...


class Prepared(Protocol):
    """A prepared statement; ``raw`` None is an empty one."""

    raw: Raw | None


class Logged(Protocol):
    """The part of a session that the log needs."""

    @property
    def applied(self) -> Level:
        """The settings that its parts have."""
        ...

    @property
    def backend(self) -> Process:
        """What other sessions call it."""
        ...

    @property
    def user(self) -> str:
        """The current role."""
        ...

    @property
    def statements(self) -> Mapping[str, Prepared]:
        """Its prepared statements."""
        ...


def logs(setting: str, above: str = "none") -> bool:
    """Whether a value of log_statement asks for more than another one does."""
    return setting != "none" and _LEVELS.index(setting) > _LEVELS.index(above)


def log_text(session: Logged, text: str, raws: Sequence[Raw]) -> None:
    """A Query message, once it is parsed and before it runs."""
    if session.applied.logs != "none" and any(_is_logged(session, raw.node) for raw in raws):
        _log(session, "statement", text)


def log_execution(session: Logged, name: str, raw: Raw, values: Sequence[Value]) -> None:
    """An Execute message of a portal that has not run."""
    if session.applied.logs != "none" and _is_logged(session, raw.node):
        _log(session, f"execute {name or '<unnamed>'}", raw.text, values)


def _log(session: Logged, kind: str, text: str, values: Sequence[Value] = ()) -> None:
    template = "statement pid=%d user=%s kind=%s text=%s"
    arguments = (session.backend.process, session.user, kind, without_passwords(text))
    if values:
        logger.info(
            template + " parameters=%s", *arguments, [None if value is None else str(value) for value in values]
        )
    else:
        logger.info(template, *arguments)


def _is_logged(session: Logged, node: Any) -> bool:
    return _level(session, node) <= _LEVELS.index(session.applied.logs)


def _level(session: Logged, node: Any) -> int:
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
