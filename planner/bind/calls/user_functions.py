"""Calls of users' functions: the body replaces the call, as PostgreSQL inlines functions of language SQL.

Owns: which function a call means, and the binding of its body with the arguments for ``$n`` and for their names. A body
that is a bare SELECT list is an expression; any other body is a subquery of its first row::

    CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1'
    SELECT f(x) FROM t   ->   SELECT x + 1 FROM t

A function that returns a set is a subquery in FROM. In a select list, and beside others in FROM, it is an array of its
rows.

https://www.postgresql.org/docs/15/xfunc-sql.html
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pglast import ast
from pglast.enums import LimitOption, SubLinkType

from catalog.catalog import Catalog
from catalog.extensions import BaseType
from catalog.objects import PG_CATALOG
from catalog.postgres import functions
from catalog.privileges import OF_FUNCTION
from catalog.routines import Function
from catalog.values.errors import SqlError, unsupported
from catalog.values.times.styles import USUAL
from catalog.values.types import BOOL, SqlType, by_oid
from planner.algebra.construction import volatility
from planner.algebra.nodes import Call, Case, ColumnRef, Filter, Literal, Project, Scalar
from planner.algebra.walk import walk
from planner.bind.calls.aggregation.aggregates import AGGREGATE_NAMES
from planner.bind.calls.extension_functions import call_member, require_computed, takes_any
from planner.bind.calls.families.arrays import array_of_query, array_of_rows
from planner.bind.calls.overloading.call_forms import without_voids
from planner.bind.calls.overloading.choice import not_unique
from planner.bind.calls.overloading.named_arguments import labels_of, unlabelled
from planner.bind.calls.set_functions import require_allowed, rows_in_expression
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.resolution import (
    Ambiguous,
    Candidate,
    TypeCall,
    call_among,
    call_by_names,
    function_call,
    places_of,
)
from planner.bind.conversion.rows import field_of, fields_of
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.functions import type_by_oid
from planner.bind.lookup.search_path import find_functions
from planner.bind.lookup.type_names import declared_typmod, find_type
from planner.bind.state.context import restricted, within
from planner.bind.state.environment import Binding, Environment, Level, Scope, source_of
from planner.bind.state.from_names import BoundQuery, Entry
from planner.parse.parser import parse
from planner.statements.statement import Output


def bind_user_call(env: Environment, node: Any) -> Scalar | None:
    """The value of a call of a user's function; None where it means another. Raises 42501, 42725 and 0A000."""
    binding = env.binding
    if (meant := _cast_to_member(env, node)) is not None:
        return meant
    called = _called(env, node)
    if called is None:
        return None
    function, given, node = called
    if function.returns_set:
        require_allowed(env, node)
        values = _gathered(env, function, given, node)
        row = rows_in_expression(env, node, values)
        return field_of(row, 0) if _is_wrapped(binding.context.catalog, function) else row
    _refuse_itself(binding, function, node)
    found = _inlined(env, function, given, node)
    binding.remember(found, node, function.name)
    return found


def _cast_to_member(env: Environment, node: Any) -> Scalar | None:
    """type('literal') of an extension's type, which is a cast; None for all else."""
    if len(node.args or ()) != 1 or not env.binding.context.catalog.extensions or labels_of(env, node):
        return None
    kind = find_type(env.binding, names_of(node.funcname))
    argument = env.bind(node.args[0]) if isinstance(kind, BaseType) else None
    if kind is None or argument is None or argument.type.name != "unknown":
        return None
    return coerce(env.binding, argument, by_oid(kind.oid), "explicit", node.args[0])


class UserRows(Struct, frozen=True):
    """The rows of a call in FROM. ``kind`` is their type, where that is declared; ``named``: they have columns' names,
    which no alias of the table changes."""

    query: BoundQuery
    kind: SqlType | None
    named: bool


def bind_user_rows(env: Environment, node: Any) -> UserRows | None:
    """The rows of a call in FROM; None where it means no user's function of rows. Raises 42501, 42725 and 0A000."""
    called = _called_set(env, node)
    if called is None:
        return None
    function, given, node = called
    kind = _declared_rows(env.binding.context.catalog, function)
    return UserRows(_rows(env, function, given, node), kind, bool(function.columns) or kind is not None)


def bind_user_array(env: Environment, node: Any) -> Scalar | None:
    """The rows of a call beside others in FROM, as an array; None where it means no user's function of rows."""
    called = _called_set(env, node)
    return None if called is None else _gathered(env, *called)


def _called_set(env: Environment, node: Any) -> tuple[Function, list[Scalar], Any] | None:
    if type(node).__name__ != "FuncCall" or not any(item.returns_set for item in _visible(env.binding, node)):
        return None
    called = _called(env, node)
    if called is None:
        return None
    function, given, node = called
    return (function, given, node) if function.returns_set else None


def _gathered(env: Environment, function: Function, given: list[Scalar], node: Any) -> Scalar:
    """A call's rows as an array of them, or of its only column's values."""
    query = _rows(env, function, given, node)
    columns, kind = list(query.relation.columns), _declared_rows(env.binding.context.catalog, function)
    if len(columns) > 1 or kind is not None or columns[0].type.element is not None:
        return array_of_rows(env, query.relation, kind or query.row, node)
    return array_of_query(env, query.relation, node)


def _is_wrapped(catalog: Catalog, function: Function) -> bool:
    """Whether an only column is the field of a row, since arrays have no arrays as elements."""
    return len(function.columns) < 2 and type_by_oid(catalog, function.result).element is not None


def _declared_rows(catalog: Catalog, function: Function) -> SqlType | None:
    """The type of the rows of SETOF a relation's or composite type; None of others."""
    kind = None if function.columns else type_by_oid(catalog, function.result)
    return None if kind is None or kind.row is None else kind


def _rows(env: Environment, function: Function, given: list[Scalar], node: Any) -> BoundQuery:
    """The rows of a call, which are those of its body."""
    _refuse_itself(env.binding, function, node)
    if any(volatility(item) == "volatile" for item in given):
        words = f"a volatile argument of {function.name}()"
        raise unsupported(words, "Compute it in a subquery in FROM.", env.binding.position(node))
    with _body(env.binding, function, given):
        rows = rows_of(env.binding, function, given)
    if function.strict and given:
        return replace(rows, relation=Filter(rows.relation, _present(given)))
    return rows


def _visible(binding: Binding, node: Any) -> list[Function]:
    """The users' functions that a call may mean."""
    schema, name = _written(node)
    context = binding.context
    known = (context.calls or {}).get((schema, name))
    if known is not None:  # of a view's text, whatever they and their schemas are called now
        return [item for item in map(context.catalog.function, known) if item is not None]
    return find_functions(binding, name, schema or None)


def _written(node: Any) -> tuple[str, str]:
    """A call's schema, '' where it has none, and name."""
    *schema, name = names_of(node.funcname)
    return schema[-1] if schema else "", name


def _called(env: Environment, node: Any) -> tuple[Function, list[Scalar], Any] | None:
    """The user's function that a call means, with its arguments; None where it means another."""
    binding, visible = env.binding, _visible(env.binding, node)
    if not visible:
        return None
    labels, written = labels_of(env, node), unlabelled(node.args or ())
    arguments = [env.bind(item) for item in written]
    if not labels:
        node, arguments = without_voids(node, arguments)
        written = unlabelled(node.args or ())
    function = _chosen(env, visible, arguments, labels, node)
    if function is None:
        return None
    _require_execute(binding, function)
    require_computed(env, function, node)
    binding.functions[function.oid] = None
    if not binding.views and not binding.inlining:
        binding.calls[(*_written(node), function.oid)] = None
    places = places_of(function.proc, len(arguments) - len(labels), labels) if labels else range(len(arguments))
    assert places is not None, "the call was chosen so that its names fit"
    given = dict(zip(places, zip(arguments, written, strict=True), strict=True))
    return function, _given(binding, function, given), node


def _refuse_itself(binding: Binding, function: Function, node: Any) -> None:
    if function.oid in binding.inlining:
        words = f"function {function.name}(), which calls itself,"
        raise unsupported(words, "Write it WITH RECURSIVE.", binding.position(node))


def _chosen(
    env: Environment, visible: Sequence[Function], arguments: list[Scalar], labels: Sequence[str], node: Any
) -> Function | None:
    """The function among ``visible`` and PostgreSQL's own; None where it is one of those, or none."""
    types = tuple(item.type.oid for item in arguments)
    *schema, name = names_of(node.funcname)
    others = [item.proc for item in visible]
    found: Candidate | TypeCall | None
    try:
        if labels:
            found = call_by_names(others if schema else (*functions(name), *others), types, labels)
        else:
            found = call_among(others, types) if schema else function_call(name, types, others)
    except Ambiguous:
        raise not_unique(env, arguments, node) from None
    if not isinstance(found, Candidate):
        return None
    chosen = found.function
    before = () if schema else _before_postgresql(env.binding, visible)
    return next(
        (item for item in visible if item.oid == chosen.oid or (item in before and item.types == chosen.arguments)),
        None,
    )


def _before_postgresql(binding: Binding, visible: Sequence[Function]) -> list[Function]:
    """The users' functions in schemas that the path has before pg_catalog, which it has to name for that."""
    path = binding.context.search_path
    nearer = path[: path.index(PG_CATALOG)] if PG_CATALOG in path else ()
    return [item for item in visible if item.schema in nearer]


def _require_execute(binding: Binding, function: Function) -> None:
    """The role that runs the statement needs EXECUTE, also for calls in a view of another owner. Raises 42501."""
    catalog = binding.context.catalog
    role = restricted(catalog, binding.context.role)
    if role is not None and not catalog.rights_of(function.oid).allows(catalog.roles, role, "X", OF_FUNCTION):
        raise SqlError("42501", f"permission denied for function {function.name}")


def _given(binding: Binding, function: Function, given: Mapping[int, tuple[Scalar, Any]]) -> list[Scalar]:
    """The arguments as declared, with the defaults of those that are left out; ``given`` by place, each as it is bound
    and as it is written."""
    catalog = binding.context.catalog
    found = []
    for place, parameter in enumerate(function.arguments):
        kind = type_by_oid(catalog, parameter.type)
        if place in given:
            scalar, node = given[place]
            found.append(
                scalar if takes_any(function, parameter.type, scalar) else declared(binding, scalar, kind, node)
            )
        else:
            assert parameter.default is not None, "the call was chosen so that what is left out has a default"
            with _body(binding, function, ()):
                default = parse(f"SELECT {parameter.default}")[0].node.targetList[0].val
                found.append(declared(binding, _expression(binding, Scope(), default), kind, None))
    return found


def declared(binding: Binding, scalar: Scalar, kind: SqlType, node: Any, is_field: bool = False) -> Scalar:
    """A value as a parameter or result of a type; a numeric keeps its digits, as one without declared digits does.

    Fields of a declared row have theirs.
    """
    if scalar.type.name == kind.name == "numeric" and not (is_field and declared_typmod(kind) != -1):
        return scalar
    found = coerce(binding, scalar, kind, "assignment", node)
    if found is None:
        raise SqlError("42P13", "return type mismatch in function")
    return found


@contextmanager
def _body(binding: Binding, function: Function, given: Sequence[Scalar]) -> Iterator[None]:
    """While a body is bound: its names are its own, ``$n`` the arguments, and no position is the statement's. It is
    read with the privileges of the running role, also in a view, and its text's dates and intervals are read in the
    session's way.
    """
    context, reader, spoke = binding.context, binding.reader, binding.speaks_of_places
    binding.speaks_of_places = "ctid" in function.body.lower()
    binding.bodies.append(tuple(given))
    binding.views.append(0)
    binding.inlining.append(function.oid)
    # A text is read when it is called, as PostgreSQL does; an expression was read when the function was made.
    reading = USUAL if function.returns else binding.reading
    binding.context = within(context, reading=reading, names=None, types=None, calls=None)
    binding.reader = binding.caller
    try:
        yield
    finally:
        binding.context, binding.reader, binding.speaks_of_places = context, reader, spoke
        binding.inlining.pop()
        binding.views.pop()
        binding.bodies.pop()


def _inlined(env: Environment, function: Function, given: list[Scalar], node: Any) -> Scalar:
    binding = env.binding
    if function.extension and not function.body:
        kind = type_by_oid(binding.context.catalog, function.result)
        return call_member(env, function, given, kind, node)
    with _body(binding, function, given):
        scalar = body_of(binding, function, given)
    _refuse_volatile(env, function, given, scalar, node)
    if not function.strict or not given:
        return scalar
    return Case(((_present(given), scalar),), Literal(None, scalar.type), scalar.type)


def _present(given: Sequence[Scalar]) -> Scalar:
    """Whether no argument is NULL."""
    present = tuple(Call("is_not_null", (item,), BOOL) for item in given)
    return present[0] if len(present) == 1 else Call("and", present, BOOL)


def rows_of(binding: Binding, function: Function, given: Sequence[Scalar]) -> BoundQuery:
    """The rows of a body over its arguments. Raises 42P13 where they are not of the declared types, and 0A000."""
    if function.returns:
        raise unsupported("RETURN in a function that returns a set", "Quote a SELECT.")
    query = Level(binding, _parameters(function, given)).bind(_query_node(function.body))
    catalog = binding.context.catalog
    kind, columns = _declared_rows(catalog, function), _columns_of(catalog, function)
    several = bool(function.columns) or kind is not None
    words = "record" if function.columns else type_by_oid(catalog, function.result)
    message = f"return type mismatch in function declared to return {words}"
    found: list[Scalar] = [ColumnRef(column) for column in query.relation.columns]
    if len(found) == 1 and found[0].type == kind:
        found = [field for _, field in fields_of(found[0])]
    if len(found) != len(columns):
        few = "few" if len(found) < len(columns) else "many"
        alone = "Final statement must return exactly one column."
        raise SqlError("42P13", message, f"Final statement returns too {few} columns." if several else alone)
    outputs = []
    for place, ((name, wanted), scalar) in enumerate(zip(columns, found, strict=True), 1):
        try:
            value = declared(binding, scalar, wanted, None, kind is not None)
        except SqlError:
            at = f"Final statement returns {scalar.type} instead of {wanted} at column {place}."
            raise SqlError("42P13", message, at if several else f"Actual return type is {scalar.type}.") from None
        outputs.append((binding.column(name, value.type), value))
    typmods = (-1 if kind is None else declared_typmod(wanted) for _, wanted in columns)
    shown = tuple(Output(name, wanted, typmod) for (name, wanted), typmod in zip(columns, typmods, strict=True))
    return BoundQuery(Project(query.relation, tuple(outputs)), shown)


def _columns_of(catalog: Catalog, function: Function) -> list[tuple[str, SqlType]]:
    """The names and types of a set's columns: those of RETURNS TABLE, of the rows that it declares, or one."""
    if function.columns:
        return [(item.name, type_by_oid(catalog, item.type)) for item in function.columns]
    kind = type_by_oid(catalog, function.result)
    return [(function.name, kind)] if kind.row is None else list(kind.row.fields)


def _parameters(function: Function, given: Sequence[Scalar]) -> Scope:
    """The arguments by their names."""
    pairs = zip(function.arguments, given, strict=True)
    return source_of(function.name, [Entry(item.name, scalar) for item, scalar in pairs if item.name])


def body_of(binding: Binding, function: Function, given: Sequence[Scalar]) -> Scalar:
    """A body over its arguments. Raises 42P13 where its value is none of the declared type."""
    scope = _parameters(function, given)
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

    return Environment(binding, scope, "functions", Level(binding, scope)).bind(node)


def value_node(body: str, returns: bool) -> Any:
    """A body's value as an expression of the grammar. Raises 0A000 and 42P13."""
    query = _query_node(f"SELECT {body}" if returns else body)
    first = _first(query)
    targets: list[Any] = list(first.targetList or (first.valuesLists or ((),))[0])
    if len(targets) != 1:
        raise SqlError("42P13", "return type mismatch in function", "Final statement must return exactly one column.")
    if _is_expression(query):
        return targets[0].val
    return ast.SubLink(subLinkType=SubLinkType.EXPR_SUBLINK, subselect=_first_row(query))


def _query_node(body: str) -> Any:
    """A body's only statement, a query. Raises 42P13 where there is none, and 0A000."""
    statements = parse(body)
    if not statements:
        detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
        raise SqlError("42P13", "return type mismatch in function", detail)
    if len(statements) != 1:
        raise unsupported("a function of several statements", "Write one SELECT.")
    query = statements[0].node
    if type(query).__name__ != "SelectStmt" or query.intoClause is not None:
        raise unsupported("a function that changes data", "Run its statements from the client.")
    return query


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
        if volatility(item) == "volatile":
            uses = sum(part is item for part in walk(found))
            if uses != 1 or function.strict:
                words = f"a volatile argument of {function.name}(), which does not use it just once"
                raise unsupported(words, "Compute it in a subquery in FROM.", env.binding.position(node))
