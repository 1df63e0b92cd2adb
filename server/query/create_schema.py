"""CREATE SCHEMA with what is to be in it: statements that are planned when their turn comes, in the new schema.

Owns: the place in which they run (CreateSchemaCommand): the schema is first on the search path, and the role is the
schema's owner. In a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from catalog.values.identifiers import quote_name
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.statements.definitions import CreateSchema
from server.plans.planning import Plan

if TYPE_CHECKING:
    from server.session.session import Session

Runner = Callable[["Session", Plan, tuple[Value, ...]], Result]


def run_schema(session: Session, plan: Plan, statement: CreateSchema, run: Runner) -> Result:
    """The schema, and then its elements, as one transaction. Raises what these raise, with positions in the whole."""
    with session.transaction.as_one():
        created = run(session, replace(plan, statement=replace(statement, elements=())), ())
        notices = list(created.notices)
        owner = session.db.catalog.roles.name(statement.owner) if statement.owner is not None else session.settings.role
        path = f"{quote_name(statement.schema.name)}, {session.settings.value('search_path')}".removesuffix(", ")
        with session.settings.only_here({"search_path": path, "role": owner}):
            for element in statement.elements:
                result = run(session, session.plan_allowed(element, (), session.surroundings), ())
                notices += result.notices
        session.applied.apply()
    return replace(created, notices=tuple(notices))
