"""Names and types resolved: PostgreSQL's parse trees -> ``planner.statements.statement``.

Owns: ``bind``, the entry for statements, and ``bind_expression`` for the texts of DEFAULT and CHECK. The files below
it go by concept: scope (names), types and casts (coercion), expressions, functions, aggregates, sources (FROM),
select, dml, ddl, utility.
"""

from planner.bind.context import Context
from planner.bind.statement import Bound, bind
from planner.bind.texts import bind_expression

__all__ = ["Bound", "Context", "bind", "bind_expression"]
