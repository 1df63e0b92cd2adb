"""The functions that bind the parts of the grammar which contain each other, and what they bind outside of statements.

Owns: ``BINDER``. Modules of expressions, calls, FROM, queries and changes reach each other by it, through an
``Environment`` or a ``Level``; modules of definitions and commands lie above and import this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from pglast import ast

from catalog.catalog import Catalog
from catalog.values.types import SqlType
from planner.algebra.nodes import Cast, Column, Scalar
from planner.bind.calls.functions import call_by_name
from planner.bind.changes import index_expressions
from planner.bind.changes.with_changes import bind_modifying
from planner.bind.conversion.coercion import coerce
from planner.bind.queries.select import bind_select
from planner.bind.scalars.expressions import bind_scalar
from planner.bind.scalars.stored_expressions import bind_stored
from planner.bind.state.context import Context
from planner.bind.state.environment import Binder, Binding, Environment, Level, Scope
from planner.bind.with_queries.with_clause import with_ctes
from planner.parse.parser import Raw

_NO_TEXT: Final = Raw(None, "", 0)


def _cast(binding: Binding, scalar: Scalar, kind: SqlType) -> Scalar | None:
    return coerce(binding, scalar, kind, "explicit")


BINDER: Final = Binder(bind_scalar, bind_select, bind_modifying, with_ctes, _cast)

#: ``index_parts(table, index)``: what a unique index over expressions, or over a part of the rows, is of.
index_parts: Final = partial(index_expressions.index_parts, BINDER)


def new_binding(context: Context, raw: Raw = _NO_TEXT) -> Binding:
    """The state of binding a statement; without a statement, for what is bound outside of any."""
    return Binding(raw, context, BINDER)


def bind_expression(
    text: str, columns: Sequence[Column], context: Context, kind: SqlType | None = None, what: str = "DEFAULT"
) -> Scalar:
    """A DEFAULT or CHECK text over a row's columns, coerced to ``kind`` as an assignment is. No error has a place."""
    return bind_stored(BINDER, text, columns, context, kind, what)


def bind_values(name: str, arguments: Sequence[Scalar], kind: SqlType, time_zone: str) -> Scalar:
    """A call of a function by name, outside of any statement: what ``calls.overloading.deferred_calls`` puts off."""
    binding = new_binding(Context(Catalog(), time_zone=time_zone))
    env = Environment(binding, Scope(), name, Level(binding))
    node = ast.FuncCall(funcname=(ast.String(sval=name),), args=tuple(ast.ParamRef() for _ in arguments))
    found = call_by_name(env, name, list(arguments), node)
    return found if found.type == kind else Cast(found, kind, True)
