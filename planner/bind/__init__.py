"""Names and types resolved: PostgreSQL's parse trees -> ``planner.statements.statement``.

Owns: ``bind``, the entry for statements, and ``bind_expression`` for the texts of DEFAULT and CHECK. The files here
go by concept: scope (names), types, expressions, sources (FROM), select, utility. Below are ``calls`` (operators,
functions, aggregates), ``changes`` (INSERT, UPDATE, DELETE, MERGE), ``definitions`` (DDL), and ``deparsing``.
"""

from planner.bind.context import Context
from planner.bind.statement import Bound, bind
from planner.bind.texts import bind_expression

__all__ = ["Bound", "Context", "bind", "bind_expression"]
