"""FOR UPDATE and FOR SHARE: the table that a query locks, and PostgreSQL's errors for queries that cannot lock.

The rows to lock are found when the query runs (``executor/sql/statement_locks``).
https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pglast.enums import LockClauseStrength, LockWaitPolicy

from catalog.objects import View
from catalog.values.errors import SqlError
from planner.bind.lookup.relations import look_up
from planner.bind.state.environment import Binding, InFrom
from planner.bind.state.with_names import Visible
from planner.statements.statement import Locking

_WORDS: Final = {
    LockClauseStrength.LCS_FORKEYSHARE: "FOR KEY SHARE",
    LockClauseStrength.LCS_FORSHARE: "FOR SHARE",
    LockClauseStrength.LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE",
    LockClauseStrength.LCS_FORUPDATE: "FOR UPDATE",
}
#: What OF may not name, by the parse node in FROM.
_UNLOCKABLE: Final = {"JoinExpr": "a join", "RangeFunction": "a function", "RangeTableFunc": "a table function"}


def words_of(clause: Any) -> str:
    """A locking clause as it is written."""
    return _WORDS[clause.strength]


def lock(binding: Binding, node: Any, with_queries: Visible[InFrom], obstacle: str | None) -> None:
    """Notes a query's locking clauses. ``obstacle`` is a part of it that goes with none.

    Raises 0A000, 42601, 42809, 42P01.
    """
    for clause in node.lockingClause:
        words = words_of(clause)
        if obstacle is not None:
            raise SqlError("0A000", f"{words} is not allowed with {obstacle}")
        sources = dict(_sources(node.fromClause or (), with_queries))
        for name, item in _relations(node.fromClause or (), with_queries):
            found = look_up(binding, item.relname, item.schemaname)
            if found is not None and (not clause.lockedRels or name in {each.relname for each in clause.lockedRels}):
                if isinstance(found, View) and found.materialized:
                    raise SqlError("42809", f'cannot lock rows in materialized view "{found.name}"')
                binding.need(found.oid, "w").columns = ()
        for named in clause.lockedRels or ():
            _check_named(binding, words, named, sources)
        nowait = clause.waitPolicy == LockWaitPolicy.LockWaitError
        table = next((name for name, what in sources.items() if what is None), "")
        before = binding.locking
        skip = clause.waitPolicy == LockWaitPolicy.LockWaitSkip
        binding.locking = Locking(words, table, nowait or (before is not None and before.nowait), skip)


def _check_named(binding: Binding, words: str, named: Any, sources: dict[str, str | None]) -> None:
    position = binding.position(named)
    if named.schemaname is not None:
        raise SqlError("42601", f"{words} must specify unqualified relation names", position=position)
    if named.relname not in sources:
        message = f'relation "{named.relname}" in {words} clause not found in FROM clause'
        raise SqlError("42P01", message, position=position)
    if (what := sources[named.relname]) is not None:
        raise SqlError("0A000", f"{words} cannot be applied to {what}", position=position)


def _relations(items: tuple[Any, ...], with_queries: Visible[InFrom]) -> Iterator[tuple[str, Any]]:
    """The relations in FROM by the names that they have there."""
    for item in items:
        if type(item).__name__ == "JoinExpr":
            yield from _relations((item.larg, item.rarg), with_queries)
        elif type(item).__name__ == "RangeVar" and (item.schemaname is not None or item.relname not in with_queries):
            yield item.alias.aliasname if item.alias else item.relname, item


def _sources(items: tuple[Any, ...], with_queries: Visible[InFrom]) -> Iterator[tuple[str, str | None]]:
    """The names in FROM, each with what it is where that cannot be locked."""
    for item in items:
        kind, alias = type(item).__name__, getattr(item, "alias", None)
        if kind == "RangeVar":
            is_with = item.schemaname is None and item.relname in with_queries
            yield alias.aliasname if alias else item.relname, "a WITH query" if is_with else None
            continue
        if kind == "JoinExpr":
            yield from _sources((item.larg, item.rarg), with_queries)
        if alias is not None:
            yield alias.aliasname, _UNLOCKABLE.get(kind)
