"""Calls of users' functions: the body takes the call's place, as PostgreSQL inlines functions of language SQL.

Owns: which function a call means (``choose``), and binding its body with the arguments for ``$n`` and for their names.
A body of a bare SELECT list is an expression; any other is a subquery of its first row::

    CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1'
    SELECT f(x) FROM t   ->   SELECT x + 1 FROM t

https://www.postgresql.org/docs/15/xfunc-sql.html
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pglast import ast
from pglast.enums import LimitOption, SubLinkType

from catalog.catalog import Catalog
from catalog.errors import SqlError, unsupported
from catalog.privileges import OF_FUNCTION
from catalog.routines import Function, named
from catalog.types import BOOL, SqlType, by_oid
from planner.bind.calls.aggregates import AGGREGATE_NAMES
from planner.bind.calls.calling import Bind, without_voids
from planner.bind.calls.choice import not_unique
from planner.bind.calls.resolution import Ambiguous, Candidate, call_among, function_call
from planner.bind.context import Binding, restricted, within
from planner.bind.environment import Environment
from planner.bind.levels import Level, subqueries_of
from planner.bind.scope import Entry, Scope, source_of
from planner.bind.typenames import names_of
from planner.expression import Call, Case, Literal, Scalar
from planner.functions import FUNCTIONS
from planner.parse import parse
from planner.walk import walk


def bind_user_call(env: Environment, node: Any, bind: Bind) -> Scalar | None:
    """The value of a call of a user's function; None where it means another. Raises 42501, 42725 and 0A000."""
    binding, names = env.binding, names_of(node.funcname)
    name, known = names[-1], binding.context.catalog.functions
    if name not in known:
        return None
    schemas = (names[-2],) if len(names) > 1 else binding.context.search_path
    visible = named(known, name, schemas)
    if not visible:
        return None
    node, arguments = without_voids(node, [bind(env, item) for item in node.args or ()])
    function = _chosen(env, visible, arguments, node, len(names) > 1)
    if function is None:
        return None
    _require_execute(binding, function)
    binding.functions[function.oid] = None
    found = _inlined(env, function, _given(env, function, arguments, node), node)
    binding.remember(found, node, function.name)
    return found


def _chosen(
    env: Environment, visible: Sequence[Function], arguments: list[Scalar], node: Any, placed: bool
) -> Function | None:
    types = tuple(item.type.oid for item in arguments)
    others = [item.proc for item in visible]
    try:
        found = call_among(others, types) if placed else function_call(names_of(node.funcname)[-1], types, others)
    except Ambiguous:
        raise not_unique(env, arguments, node) from None
    if not isinstance(found, Candidate):
        return None
    return next((item for item in visible if item.oid == found.function.oid), None)


def _require_execute(binding: Binding, function: Function) -> None:
    """EXECUTE is the caller's, in a view, too, whoever owns that. Raises 42501."""
    catalog = binding.context.catalog
    role = restricted(catalog, binding.context.role)
    if role is not None and not catalog.rights_of(function.oid).allows(catalog.roles, role, "X", OF_FUNCTION):
        raise SqlError("42501", f"permission denied for function {function.name}")


def type_by_oid(catalog: Catalog, oid: int) -> SqlType:
    """A type of a function's parameters or result."""
    return catalog.type_of(oid) or by_oid(oid)


def _given(env: Environment, function: Function, arguments: list[Scalar], node: Any) -> list[Scalar]:
    """The arguments as declared, with the defaults of those that are left out."""
    binding, catalog = env.binding, env.binding.context.catalog
    given = []
    for place, parameter in enumerate(function.arguments):
        kind = type_by_oid(catalog, parameter.type)
        if place < len(arguments):
            given.append(declared(binding, arguments[place], kind, node.args[place]))
        else:
            assert parameter.default is not None, "the call was chosen so that what is left out has a default"
            with _body(binding, function, ()):
                default = parse(f"SELECT {parameter.default}")[0].node.targetList[0].val
                given.append(declared(binding, _expression(binding, Scope(), default), kind, None))
    return given


def declared(binding: Binding, scalar: Scalar, kind: SqlType, node: Any) -> Scalar:
    """A value as a parameter or result of a type; a numeric keeps its digits, as one without declared digits does."""
    from planner.bind.types import coerce

    if scalar.type.name == kind.name == "numeric":
        return scalar
    found = coerce(binding, scalar, kind, "assignment", node)
    if found is None:
        raise SqlError("42P13", "return type mismatch in function")
    return found


@contextmanager
def _body(binding: Binding, function: Function, given: Sequence[Scalar]) -> Iterator[None]:
    """While a body is bound: its names are its own, ``$n`` the arguments, and no position is the statement's."""
    context = binding.context
    binding.bodies.append(tuple(given))
    binding.views.append(0)
    binding.inlining.append(function.oid)
    binding.context = within(context, names=None, types=None)
    try:
        yield
    finally:
        binding.context = context
        binding.inlining.pop()
        binding.views.pop()
        binding.bodies.pop()


def _inlined(env: Environment, function: Function, given: list[Scalar], node: Any) -> Scalar:
    binding = env.binding
    if function.oid in binding.inlining:
        words = f"function {function.name}(), which calls itself,"
        raise unsupported(words, "Write it WITH RECURSIVE.", binding.position(node))
    with _body(binding, function, given):
        scalar = body_of(binding, function, given)
    _refuse_volatile(env, function, given, scalar, node)
    if not function.strict or not given:
        return scalar
    present = tuple(Call("is_not_null", (item,), BOOL) for item in given)
    condition = present[0] if len(present) == 1 else Call("and", present, BOOL)
    return Case(((condition, scalar),), Literal(None, scalar.type), scalar.type)


def body_of(binding: Binding, function: Function, given: Sequence[Scalar]) -> Scalar:
    """A body over its arguments. Raises 42P13 where its value is none of the declared type."""
    scope = source_of(
        function.name,
        [Entry(item.name, scalar) for item, scalar in zip(function.arguments, given, strict=True) if item.name],
    )
    scalar = _expression(binding, scope, value_node(function.body, function.returns))
    kind = type_by_oid(binding.context.catalog, function.result)
    try:
        return declared(binding, scalar, kind, None)
    except SqlError as error:
        if error.sqlstate != "42P13":
            raise
        message = f"return type mismatch in function declared to return {kind}"
        raise SqlError("42P13", message, f"Actual return type is {scalar.type}.") from None


def _expression(binding: Binding, scope: Scope, node: Any) -> Scalar:
    from planner.bind.expressions import bind_scalar  # expressions contain calls

    return bind_scalar(Environment(binding, scope, "functions", subqueries_of(Level(binding, scope))), node)


def value_node(body: str, returns: bool) -> Any:
    """A body's value as an expression of the grammar. Raises 0A000 and 42P13."""
    statements = parse(f"SELECT {body}" if returns else body)
    if len(statements) != 1:
        raise unsupported("a function of several statements", "Write one SELECT.")
    query = statements[0].node
    if type(query).__name__ != "SelectStmt" or query.intoClause is not None:
        raise unsupported("a function that changes something", "Send its statements yourself.")
    targets: list[Any] = list(_first(query).targetList or ())
    if len(targets) != 1:
        raise SqlError("42P13", "return type mismatch in function", "Final statement must return exactly one column.")
    if _is_expression(query):
        return targets[0].val
    return ast.SubLink(subLinkType=SubLinkType.EXPR_SUBLINK, subselect=_first_row(query))


def _first(query: Any) -> Any:
    """The SELECT that names the columns."""
    while query.larg is not None:
        query = query.larg
    return query


def _is_expression(query: Any) -> bool:
    clauses = ("fromClause", "whereClause", "groupClause", "havingClause", "valuesLists", "withClause", "larg")
    limits = ("limitCount", "limitOffset", "distinctClause", "windowClause", "lockingClause")
    return not any(getattr(query, name) for name in clauses + limits) and not _aggregates(query)


def _aggregates(query: Any) -> bool:
    """Whether the whole is one group, which has one row."""
    targets: list[Any] = list(query.targetList or ())
    call: Any = targets[0].val if targets else None
    if type(call).__name__ != "FuncCall" or call.over is not None:
        return False
    return names_of(call.funcname)[-1] in AGGREGATE_NAMES


def _first_row(query: Any) -> Any:
    """The query with no row but the first, which is all that such a function gives."""
    if query.larg is None and not query.groupClause and _aggregates(query):
        return query
    if query.limitCount is not None:
        inner = ast.RangeSubselect(subquery=query, alias=ast.Alias(aliasname="rows"))
        star = ast.ResTarget(val=ast.ColumnRef(fields=(ast.A_Star(),)))
        query = ast.SelectStmt(targetList=(star,), fromClause=(inner,), op=query.op, all=False)
    else:
        query = copy.copy(query)
    query.limitCount, query.limitOption = ast.A_Const(val=ast.Integer(ival=1)), LimitOption.LIMIT_OPTION_COUNT
    return query


def _refuse_volatile(env: Environment, function: Function, given: Sequence[Scalar], found: Scalar, node: Any) -> None:
    """An argument whose value changes must be computed once: it stands in the body once. Raises 0A000."""
    for item in given:
        if any(FUNCTIONS[part.function].volatility == "volatile" for part in walk(item) if isinstance(part, Call)):
            uses = sum(part is item for part in walk(found))
            if uses != 1 or function.strict:
                words = f"a volatile argument of {function.name}(), which does not use it just once"
                raise unsupported(words, "Compute it in a subquery in FROM.", env.binding.position(node))
