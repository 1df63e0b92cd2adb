"""Names and types resolved: PostgreSQL's parse trees become ``planner.statements``.

How a statement is bound:

1. ``statement.bind`` makes a ``Binding``, which remembers what the statement depends on and infers types of
   parameters, and dispatches by the kind of parse node: queries to ``queries``, INSERT, UPDATE, DELETE, MERGE and COPY
   to ``changes``, CREATE, ALTER, DROP and GRANT to ``definitions``, all others to ``commands``.
2. ``queries.select.bind_select`` binds a query clause by clause. ``with_queries`` makes the names of WITH known,
   ``from_items.from_clause.bind_from`` makes one relation of FROM and a ``Scope`` of the names that it offers.
3. ``scalars.expressions.bind_scalar`` binds each expression in its ``Environment`` (``state``): a column is looked up
   in the scope, a call goes to ``calls``.
4. ``calls`` asks ``conversion.resolution`` which operator or function PostgreSQL would choose for the arguments' types,
   and ``conversion.coercion.coerce`` casts the arguments to the types that this one takes.
5. Names of relations, types and schemas are found by ``lookup``, along the search path.
6. ``privileges.require_privileges`` checks what the role needs for all that the ``Binding`` has noted.

``bind_expression`` binds a stored text (DEFAULT, CHECK). ``deparsing`` goes the other way: it writes parse trees as
PostgreSQL's catalogs show them.
"""

from planner.bind.binder import bind_expression
from planner.bind.state.context import Context
from planner.bind.statement import Bound, bind

__all__ = ["Bound", "Context", "bind", "bind_expression"]
