"""A WITH clause: which names the rest of the query sees, and that each query in it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError
from planner.bind.state.environment import Cte, Level
from planner.bind.state.with_names import Clause, Returned, Visible
from planner.bind.with_queries.cte_columns import cte_names, read_returned
from planner.bind.with_queries.cte_queries import check_cte
from planner.bind.with_queries.references import read_first, refers_to
from planner.bind.with_queries.search_and_cycle import check_tracing


def with_ctes(level: Level, clause: Any, uses: Mapping[str, int] | None = None) -> Level:
    """The level that a WITH clause makes. Every query in it is checked, referenced or not; ``uses`` says how often."""
    known: set[str] = set()
    for item in clause.ctes:
        if item.ctename in known:
            message = f'WITH query name "{item.ctename}" specified more than once'
            raise SqlError("42712", message, position=level.binding.position(item))
        known.add(item.ctename)
    items = read_first(level.binding, clause.ctes) if clause.recursive else clause.ctes
    names = Clause(level.ctes, (item.ctename for item in items))
    for item in items:
        level = replace(level, ctes=Visible(names))
        if type(item.ctequery).__name__ != "SelectStmt":
            returned = level.binding.binder.change(level, clause, item)
            if isinstance(returned, Returned):
                cte_names(level.binding, item, read_returned(level.binding, returned))
            names.bind(item.ctename, returned)
            continue
        cte = Cte(
            item,
            level,
            bool(clause.recursive) and refers_to(item.ctequery, item.ctename),
            (uses or {}).get(item.ctename, 1),
        )
        check_tracing(level.binding, cte.node, cte.recursive)
        check_cte(level.binding, cte)
        names.bind(item.ctename, cte)
    return replace(level, ctes=Visible(names))
