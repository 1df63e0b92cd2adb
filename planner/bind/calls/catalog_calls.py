"""Functions about the catalog: a call becomes their body, SQL over system relations.

Owns: binding a body of ``catalog.system.functions`` with a call's arguments for ``$n`` (what PostgreSQL's planner does
with functions of language SQL), functions in FROM among them, and the texts of oids that are shown by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from catalog.names import split_name
from catalog.objects import Catalog
from catalog.postgres import functions, type_oids
from catalog.system.functions import ALLOWED, INFORMATION, READ, SCALARS, SHOWN, TABLES
from catalog.system.indexes import indexes_of
from catalog.system.naming import ROLE, ROLE_NAME, SCHEMAS, schema_oid
from catalog.errors import SqlError, undefined_table, unsupported
from catalog.objects import Table
from catalog.types import BOOL, OID, TEXT, SqlType, array, by_name, by_oid, is_known
from planner.algebra import Project
from planner.bind.calls.overloads import chosen_function, type_name
from planner.bind.context import Binding
from planner.bind.environment import Environment
from planner.bind.scope import Scope, resolve
from planner.bind.typenames import names_of
from planner.expression import Call, Cast, ColumnRef, Literal, Scalar
from planner.parse import parse
from planner.walk import walk

if TYPE_CHECKING:
    from planner.bind.sources import BoundQuery

Bind = Callable[[Environment, Any], Scalar]

#: Deep enough for a body that calls others; a body never calls itself.
_SCOPE: Final = Scope()


@cache
def _node(body: str) -> Any:
    """The parse node of a scalar body."""
    return parse(f"SELECT {body}")[0].node.targetList[0].val


@cache
def query_node(body: str) -> Any:
    """The parse node of a body that is a query."""
    return parse(body)[0].node


@contextmanager
def arguments_of(binding: Binding, arguments: Sequence[Scalar]) -> Iterator[None]:
    """While a body is bound: ``$n`` is the call's n-th argument, and no position is the statement's."""
    binding.bodies.append(tuple(arguments))
    binding.views.append(0)
    try:
        yield
    finally:
        binding.views.pop()
        binding.bodies.pop()


def bind_body(binding: Binding, body: str, arguments: Sequence[Scalar], kind: SqlType) -> Scalar:
    """A scalar body of a type, over arguments that are bound already."""
    from planner.bind.expressions import bind_scalar  # expressions contain calls
    from planner.bind.select import subquery_binder
    from planner.bind.sources import Level
    from planner.bind.types import coerce

    with arguments_of(binding, arguments):
        env = Environment(binding, _SCOPE, "functions", subquery_binder(Level(binding)))
        found = bind_scalar(env, _node(body))
        if kind.name == "void":
            return Literal("", kind)
        coerced = coerce(binding, found, kind, "explicit")
    assert coerced is not None, (body, kind)
    return coerced


def _signature(name: str, types: Sequence[str]) -> str:
    return f"{name}({', '.join(types)})"


def bind_catalog_call(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar | None:
    """A call of a function about the catalog; None for any other."""
    from planner.bind.types import coerce

    if name == "pg_typeof" and len(arguments) == 1:
        return Literal(arguments[0].type.oid, SqlType("regtype"))
    if name == "current_setting" and arguments and any(isinstance(item, ColumnRef) for item in walk(arguments[0])):
        body = "(SELECT value FROM pg_lookups.shown_settings WHERE name = lower($1))"
        return bind_body(env.binding, body, arguments[:1], TEXT)
    if name in INFORMATION and names_of(node.funcname)[0] == "information_schema":
        declared, result, body = INFORMATION[name]
        given = [_given(env, *item) for item in zip(arguments, declared, node.args, strict=False)]
        return bind_body(env.binding, body, given, by_name(result))
    if name not in _NAMES:
        return None
    found = chosen_function(name, tuple(item.type.oid for item in arguments))
    if not isinstance(found, tuple):
        return None
    chosen, types = found
    if name == "current_schemas":
        return _current_schemas(env, arguments, node)
    body = "true" if name in ALLOWED else SCALARS.get(_signature(name, types))
    if body is None or not is_known(chosen.result):
        return None
    given = []
    for scalar, declared, place in zip(arguments, types, node.args or (), strict=False):
        item = coerce(env.binding, scalar, by_name(declared), "implicit", place)
        assert item is not None, "the function was chosen so that its arguments coerce"
        given.append(item)
    if name in ALLOWED:
        return _allowed(given)
    return bind_body(env.binding, body, given, by_oid(chosen.result))


_NAMES: Final = frozenset(item.partition("(")[0] for item in SCALARS) | ALLOWED | {"current_schemas"}


def _allowed(arguments: list[Scalar]) -> Scalar:
    """What the one role may do: everything; NULL of NULL, which the oid of nothing is not."""
    known = [Call("is_not_null", (item,), BOOL) for item in arguments if not isinstance(item, Literal)]
    if not known:
        return Literal(True, BOOL)
    every = known[0] if len(known) == 1 else Call("and", tuple(known), BOOL)
    return Call("nullif", (every, Literal(False, BOOL)), BOOL)


def _current_schemas(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    """The schemas of search_path that exist, with pg_catalog before them where it is asked for."""
    (implicit,) = arguments
    if isinstance(implicit, Cast):
        implicit = implicit.argument
    if not isinstance(implicit, Literal):
        raise unsupported("current_schemas() of something computed", position=env.binding.position(node))
    path = [name for name in env.binding.context.search_path if name in SCHEMAS]
    if str(implicit.value).lower() in ("true", "t", "1") and "pg_catalog" not in path:
        path.insert(0, "pg_catalog")
    return Literal(tuple(path), SqlType("array", element=SqlType("name")))


#: Functions that yield rows: name -> declared types of the arguments, and the query.
_TABLES: Final = {
    name: (tuple(item.strip() for item in types.rstrip(")").split(",") if item.strip()), body)
    for (name, _, types), body in ((signature.partition("("), body) for signature, body in TABLES.items())
}
TABLE_NAMES: Final = frozenset(_TABLES)
#: Of these, those with more than one column.
_RECORDS: Final = TABLE_NAMES - {"pg_partition_ancestors"}


def bind_table_call(env: Environment, node: Any, bind: Bind) -> BoundQuery | None:
    """The rows of a function about the catalog; None for any other."""
    from planner.bind.select import bind_select
    from planner.bind.sources import Level

    declared, body = _TABLES[names_of(node.funcname)[-1]]
    arguments = [bind(env, item) for item in node.args or ()]
    if len(arguments) != len(declared):
        return None
    given = [_given(env, *item) for item in zip(arguments, declared, node.args or (), strict=True)]
    with arguments_of(env.binding, given):
        return bind_select(Level(env.binding), query_node(body))


def _given(env: Environment, scalar: Scalar, declared: str, node: Any) -> Scalar:
    from planner.bind.types import coerce

    if declared == "anyarray":
        return scalar
    kind = array(by_name(declared[1:])) if declared.startswith("_") else by_name(declared)
    found = coerce(env.binding, scalar, kind, "implicit", node)
    if found is None:
        raise env.error("42883", f"function {'.'.join(names_of(node.funcname))}() does not exist", node)
    return found


def bind_field(env: Environment, node: Any, bind: Bind) -> Scalar | None:
    """(f(x)).field in a select list, of a function that yields rows; None for any other selection."""
    call, selected = node.arg, node.indirection
    if type(call).__name__ == "ColumnRef" and all(type(item).__name__ == "String" for item in selected):
        names = names_of(call.fields)
        record = field_name(names[-1], selected[0].sval)
        if any(entry.name == record for level in env.scope.levels() for item in level.sources for entry in item.entries):
            return resolve(env.binding, env.scope, (*names[:-1], record), call).scalar
        return None
    if type(call).__name__ != "FuncCall" or names_of(call.funcname)[-1] not in TABLE_NAMES or env.sets is None:
        return None
    if len(selected) != 1 or type(selected[0]).__name__ != "String":
        return None
    name = selected[0].sval
    values = dict(bind_lists(env.without_sets(name), call, bind))
    if name not in values:
        raise env.error("42703", f'column "{name}" not found in data type record', node)
    return ColumnRef(env.sets.add(env.binding, name, values[name]))


def yields_rows(node: Any) -> bool:
    """Whether a function about the catalog yields rows of several columns."""
    return names_of(node.funcname)[-1] in _RECORDS


def bind_record(env: Environment, node: Any, name: str, bind: Bind) -> Iterator[tuple[str, Scalar]]:
    """A row of such a function as an item of a subquery's select list: its fields, each a column of its own, which
    ``field_name`` names. (A row is no value; what selects its fields finds them so.)
    """
    if not env.binding.in_from or env.sets is None:
        instead = "Name its columns, or call it in FROM."
        raise unsupported(f"{names_of(node.funcname)[-1]}() as a row", instead, env.binding.position(node))
    for field, values in bind_lists(env.without_sets(name), node, bind):
        yield field_name(name, field), ColumnRef(env.sets.add(env.binding, field, values))


def field_name(record: str, field: str) -> str:
    """The name of a column that is a row's field; no client can write it."""
    return f"{record}\0{field}"


def bind_lists(env: Environment, node: Any, bind: Bind) -> Iterator[tuple[str, Scalar]]:
    """The columns of a function that yields rows, each as an array."""
    from planner.bind.calls.arrays import array_of_query

    query = bind_table_call(env, node, bind)
    if query is None:
        raise env.error("42883", f"function {'.'.join(names_of(node.funcname))}() does not exist", node)
    for place, output in enumerate(query.outputs):
        again = query if place == 0 else bind_table_call(env, node, bind)
        assert again is not None
        column = again.relation.columns[place]
        one = Project(again.relation, ((env.binding.column(output.name, column.type), ColumnRef(column)),))
        yield output.name, array_of_query(env, one, node)


# --- oids that are shown by name -------------------------------------------------------------------------------------


def shown_oid(binding: Binding, scalar: Scalar) -> Scalar:
    """The text of an oid of a type such as regclass: the name of what it means, else the number."""
    number = Cast(Cast(scalar, OID), TEXT)
    body = SHOWN[scalar.type.name]
    text = bind_body(binding, f"coalesce({body}, CASE WHEN $1::oid = 0 THEN '-' ELSE $2 END)", (scalar, number), TEXT)
    return text


def read_oid(binding: Binding, scalar: Scalar, target: SqlType, node: Any = None) -> Scalar:
    """A text as the oid of what it names. Raises for a constant that names nothing, by the type."""
    if isinstance(scalar, Literal):
        if scalar.value is None:
            return Literal(None, target)
        text = str(scalar.value)
        if text.strip().isdigit():
            return Literal(int(text), target)
        return Literal(0 if text == "-" else named_oid(binding, text, target.name, node), target)
    body = READ.get(target.name)
    if body is None:
        raise unsupported(f"a cast of something computed to {target}", position=binding.position(node))
    return bind_body(binding, f"CASE WHEN $1 ~ '^[0-9]+$' THEN $1::oid::{target.name} ELSE {body} END", (scalar,), target)


def named_oid(binding: Binding, text: str, kind: str, node: Any = None) -> int:
    """The oid that a name means in a type. Raises 42P01, 42704, 42883, 3F000, and 42725 where it is not one's alone."""
    match kind:
        case "regclass":
            return _relation(binding.context.catalog, binding.context.search_path, text, binding.position(node))
        case "regtype":
            return _type(binding, text)
        case "regproc":
            return _function(text)
        case "regnamespace":
            return _schema(split_name(text)[1])
        case "regrole":
            if split_name(text)[1] != ROLE_NAME:
                raise SqlError("42704", f'role "{text}" does not exist')
            return ROLE
        case _:
            raise unsupported(f"a name as {kind}", "Give the oid.", binding.position(node))


def _relation(catalog: Catalog, path: tuple[str, ...], text: str, position: int | None) -> int:
    schema, name = split_name(text)
    found = catalog.find(name, schema, path)
    if found is not None:
        return found.oid
    for item in catalog.objects.values():
        if isinstance(item, Table) and (item.schema == schema if schema else item.schema in path):
            for index in indexes_of(item):
                if index.name == name:
                    return index.oid
    raise undefined_table(f"{schema}.{name}" if schema else name, position)


def _type(binding: Binding, text: str) -> int:
    from planner.bind.typenames import type_of

    _, name = split_name(text) if '"' in text or "." in text else (None, text.strip().lower())
    if name in type_oids():
        return type_oids()[name]
    try:
        return type_of(binding, parse(f"SELECT NULL::{text}")[0].node.targetList[0].val.typeName).oid
    except SqlError:
        raise SqlError("42704", f'type "{text}" does not exist') from None


def _function(text: str) -> int:
    found = functions(split_name(text)[1])
    if not found:
        raise SqlError("42883", f'function "{text}" does not exist')
    if len(found) > 1:
        raise SqlError("42725", f'more than one function named "{text}"')
    return found[0].oid


def _schema(name: str) -> int:
    if name not in SCHEMAS:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    return schema_oid(name)


assert type_name(25) == "text"
