"""INSERT, UPDATE and DELETE in WITH: their RETURNING is a relation for the rest of the statement.

Owns: where they may stand, and which of them may change one table together. All parts of a statement see the tables as
they were before the statement, and none sees another's changes. See
https://www.postgresql.org/docs/15/queries-with.html#QUERIES-WITH-MODIFYING.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.objects import Stream
from catalog.values.errors import SqlError, unsupported
from planner.bind.changes.dml import HANDLERS
from planner.bind.state.environment import Binding, Level
from planner.bind.state.with_names import Refused, Returned
from planner.bind.with_queries.references import refers_to
from planner.statements.statement import Delete, Explain, Insert, Merge, Modifying, Query, RowChange, Statement, Update

#: Statements around another one.
_AROUND: Final = ("CopyStmt", "ExplainStmt")


def bind_modifying(level: Level, clause: Any, item: Any) -> Returned | Refused:
    """A WITH query that changes rows: what its name stands for."""
    binding, name, recursive = level.binding, item.ctename, bool(clause.recursive)
    position = binding.position(item)
    if type(item.ctequery).__name__ == "MergeStmt":
        raise SqlError("0A000", "MERGE not supported in WITH query", position=position)
    if type(binding.raw.node).__name__ == "ViewStmt":
        raise SqlError("0A000", "views must not contain data-modifying statements in WITH")
    if type(binding.raw.node).__name__ == "DeclareCursorStmt":
        raise SqlError("0A000", "DECLARE CURSOR must not contain data-modifying statements in WITH")
    whole = binding.raw.node.query if type(binding.raw.node).__name__ in _AROUND else binding.raw.node
    if clause is not getattr(whole, "withClause", None):
        message = "WITH clause containing a data-modifying statement must be at the top level"
        raise SqlError("0A000", message, position=position)
    if recursive and refers_to(item.ctequery, name):
        message = f'recursive query "{name}" must not contain data-modifying statements'
        raise SqlError("42P19", message, position=position)
    statement = HANDLERS[type(item.ctequery).__name__](binding, item.ctequery, level)
    assert isinstance(statement, Insert | Update | Delete)
    if isinstance(statement.target, Stream):
        raise unsupported("INSERT into a stream in WITH", "Use a separate statement.", position)
    leaf = _leaf(binding, statement)
    binding.modifications.append((leaf, statement))
    if statement.returning is None:
        return Refused("0A000", f'WITH query "{name}" does not have a RETURNING clause')
    return Returned(item, leaf, statement.returning)


def _leaf(binding: Binding, statement: Insert | Update | Delete) -> str:
    """A name of its own in the statement, and in others only for rows of the same types: inputs are known by it."""
    outputs = statement.returning.outputs if statement.returning is not None else ()
    return "_".join((f"__with{len(binding.modifications)}", *(output.type.name for output in outputs)))


def with_modifications(binding: Binding, statement: Statement) -> Statement:
    """The whole of a statement with such queries."""
    if not binding.modifications:
        return statement
    if isinstance(statement, Explain):
        return statement  # of the whole
    assert isinstance(statement, Query | RowChange), "they stand in a statement's own WITH"
    if isinstance(statement, Insert) and isinstance(statement.target, Stream):
        raise unsupported("INSERT, UPDATE or DELETE in WITH of an INSERT into a stream", "Run two statements.")
    parts = (*(part for _, part in binding.modifications), statement)
    for part in parts:
        together = [other for other in parts if not isinstance(other, Query) and _target(other) == _target(part)]
        if _looks_at_rows(part) and len(together) > 1:
            instead = "Run them one after the other in a transaction."
            raise unsupported("ON CONFLICT or MERGE beside another change of the same table", instead)
    return Modifying(tuple(binding.modifications), statement)


def _target(statement: Statement) -> int | None:
    return None if isinstance(statement, Query) else statement.target.oid  # type: ignore[union-attr]


def _looks_at_rows(statement: Statement) -> bool:
    """Whether what it does depends on the rows that another part may have changed."""
    return isinstance(statement, Merge) or (isinstance(statement, Insert) and statement.conflict is not None)
