"""Functions about the catalog: a call is replaced by the function's body, SQL over system relations.

Owns: which calls these are, and the binding of a body of ``catalog.system.functions`` with the call's arguments for
``$n``, also for functions that yield rows. PostgreSQL's planner does this for functions of language SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from catalog.catalog import whole_path
from catalog.objects import PG_TEMP
from catalog.system.functions import (
    ALLOWED,
    INFORMATION,
    LOOKUPS,
    OF_BODIES,
    OF_RELATIONS,
    OF_SUBQUERIES,
    SCALARS,
    SERIAL_OID,
    TABLES,
)
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, NAMED_OIDS, TEXT, SqlType, array, by_name, by_oid, is_known
from planner.algebra.construction import has_subquery
from planner.algebra.nodes import Call, Cast, ColumnRef, Literal, Project, Scalar
from planner.algebra.walk import walk
from planner.bind.calls.families.arrays import array_of_query
from planner.bind.calls.overloading.choice import (
    no_function,  # types contain bodies
    not_unique,  # whose words name types, which bind by calls
)
from planner.bind.calls.overloading.overloads import chosen_function
from planner.bind.calls.system.privilege_calls import bind_privilege_call
from planner.bind.conversion.catalog_bodies import arguments_of, bind_body, query_node
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.named_oids import (
    check_spelling,  # which needs bodies
    named_oid,  # which needs bodies
    read_oid,  # which needs bodies
)
from planner.bind.conversion.requirements import required
from planner.bind.conversion.resolution import Ambiguous
from planner.bind.lookup.columns import resolve
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.search_path import session_path
from planner.bind.lookup.type_names import type_or_domain
from planner.bind.state.environment import Environment, Level
from planner.bind.state.from_names import BoundQuery


def _signature(name: str, types: Sequence[str]) -> str:
    return f"{name}({', '.join(types)})"


def is_body_call(env: Environment, names: Sequence[str]) -> bool:
    """Whether a call means a function that only bodies call."""
    return names[0] == LOOKUPS and names[-1] in OF_BODIES and bool(env.binding.bodies)


def bind_body_call(env: Environment, name: str, node: Any) -> Scalar:
    """A call of such a function; its arguments have their types."""
    return Call(name, tuple(env.bind(item) for item in node.args), by_name(OF_BODIES[name]))


def bind_catalog_call(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar | None:
    """A call of a function about the catalog; None for any other."""
    if name == "pg_typeof" and len(arguments) == 1:
        return Literal(_domain_of(env, arguments[0], node.args[0]) or arguments[0].type.oid, SqlType("regtype"))
    if name in INFORMATION and names_of(node.funcname)[0] == "information_schema":
        declared, result, text = INFORMATION[name]
        given = _given(env, node, arguments, declared)
        return bind_body(env.binding, text, given, by_name(result))
    if name == "current_setting" and arguments and any(isinstance(item, ColumnRef) for item in walk(arguments[0])):
        return _computed_setting(env, arguments)
    if name.removesuffix("in") in NAMED_OIDS and len(arguments) == 1 and name.endswith("in"):
        return _read_in(env, name, arguments, node)
    if name in _IN_RECOVERY and (not arguments or name == "pg_promote"):
        kind = _IN_RECOVERY[name]
        return Call("require", (Literal(False, BOOL), Literal(None, kind), _NO_RECOVERY), kind)
    if name not in _NAMES:
        return None
    try:
        found = chosen_function(name, tuple(item.type.oid for item in arguments))
    except Ambiguous:
        raise not_unique(env, arguments, node) from None
    if not isinstance(found, tuple):
        return None
    chosen, types = found
    if name in ("to_regclass", "to_regnamespace", "to_regrole"):
        _check_spelling(arguments[0], name)
    if name in LOOKED_UP or (name in ("to_regproc", "to_regtype") and isinstance(arguments[0], Literal)):
        return _looked_up(env, name, arguments, node)
    if name == "current_schemas":
        return _current_schemas(env, arguments, node)
    signature = _signature(name, types)
    body = SCALARS.get(signature)
    if signature in OF_SUBQUERIES and has_subquery(arguments[0]):
        body = OF_SUBQUERIES[signature]
    if (body is None and name not in ALLOWED) or not is_known(chosen.result):
        return None
    given = _given(env, node, arguments, types)
    if name in OF_RELATIONS and types[0] == "text":
        given[0] = _relation(env, given[0], node)
    if body is None:
        return bind_privilege_call(env, name, given, partial(bind_body, env.binding))
    if name == "to_regclass" and env.binding.bodies and (known := env.binding.relation_named(given[0])) is not None:
        return known
    scalar = bind_body(env.binding, body, given, by_oid(chosen.result))
    if name == "pg_get_serial_sequence":
        binding = env.binding
        binding.remember_name(scalar, lambda: bind_body(binding, SERIAL_OID, given, by_name("regclass")))
    return scalar


def _domain_of(env: Environment, scalar: Scalar, node: Any) -> int:
    """The domain of a relation's column, or of a cast; 0 of anything else: expressions have domains' base types."""
    if type(node).__name__ == "TypeCast":
        return type_or_domain(env.binding, node.typeName)[1]
    if type(node).__name__ != "ColumnRef" or not _are_names(node.fields) or scalar.type.row is not None:
        return 0
    entry = resolve(env.binding, env.scope, names_of(node.fields), node)
    item = env.binding.context.catalog.objects.get(entry.table)
    columns = () if item is None else item.columns
    return columns[entry.attribute - 1].domain if 0 < entry.attribute <= len(columns) else 0


def _computed_setting(env: Environment, arguments: list[Scalar]) -> Scalar:
    """current_setting() of a computed name. Of a name that is none an engine raises 42704, or it is NULL as asked."""
    shown = bind_body(
        env.binding, "(SELECT value FROM pg_lookups.shown_settings WHERE name = lower($1))", arguments[:1], TEXT
    )
    may_miss = arguments[1] if len(arguments) > 1 else Literal(False, BOOL)
    known = bind_body(env.binding, "$1 IS NULL OR $2 IS NOT NULL OR $3", (arguments[0], shown, may_miss), BOOL)
    return required(known, shown, "42704", "unrecognized configuration parameter")


def _relation(env: Environment, name: Scalar, node: Any) -> Scalar:
    """The relation that a text names. Raises 42P01."""
    with env.binding.without_positions():
        found = coerce(env.binding, name, by_name("regclass"), "explicit", node)
    assert found is not None
    return found


#: Functions that only look for a name among PostgreSQL's own and users' functions, operators and collations.
LOOKED_UP: Final = frozenset(f"to_{kind}" for kind in ("regprocedure", "regoper", "regoperator", "regcollation"))
_NAMES: Final = frozenset(item.partition("(")[0] for item in SCALARS) | ALLOWED | LOOKED_UP | {"current_schemas"}


#: What controls the replay of a standby, by the type of its result.
_IN_RECOVERY: Final = {
    "pg_is_wal_replay_paused": BOOL,
    "pg_get_wal_replay_pause_state": TEXT,
    "pg_wal_replay_pause": SqlType("void"),
    "pg_wal_replay_resume": SqlType("void"),
    "pg_promote": BOOL,
}
_NO_RECOVERY: Final = Literal("!55000!recovery is not in progress", TEXT)


def _read_in(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar | None:
    """regclassin('name') and the like: what the type's input function reads."""
    text = coerce(env.binding, arguments[0], TEXT, "explicit", node)
    if text is None:
        return None
    with env.binding.without_positions():  # a function's errors have none
        return read_oid(env.binding, text, SqlType(name.removesuffix("in")), node)


def _check_spelling(text: Scalar, name: str) -> None:
    """That a constant can be a name: what is none is an error, while a name of nothing is NULL."""
    text = text.argument if isinstance(text, Cast) else text
    if isinstance(text, Literal) and text.value is not None and not str(text.value).isdigit():
        check_spelling(str(text.value), name.removeprefix("to_"))


def _looked_up(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """to_regprocedure('name') and the like: the oid that a constant names; NULL if it names nothing or several."""
    (text,), kind = arguments, SqlType(name.removeprefix("to_"))
    if not isinstance(text, Literal):
        raise unsupported(f"{name}() with a computed argument", "Write the name.", env.binding.position(node))
    if text.value is None:
        return Literal(None, kind)
    _check_spelling(text, name)
    try:
        return Literal(named_oid(env.binding, str(text.value), kind.name), kind)
    except SqlError as error:
        is_none = error.sqlstate in ("42883", "42725", "3F000")
        if not is_none and not (error.sqlstate == "42704" and name in ("to_regcollation", "to_regtype")):
            raise
        return Literal(None, kind)


def _current_schemas(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    """The schemas of search_path that exist, with pg_catalog before them where it is asked for."""
    (implicit,) = arguments
    if isinstance(implicit, Cast):
        implicit = implicit.argument
    if not isinstance(implicit, Literal):
        raise unsupported("current_schemas() with a computed argument", position=env.binding.position(node))
    given = session_path(env.binding)
    everything = str(implicit.value).lower() in ("true", "t", "1")
    catalog = env.binding.context.catalog
    path = [name for name in (whole_path(given) if everything else given)
            if name in catalog.schemas or (name == PG_TEMP and catalog.temporary)]  # fmt: skip
    return Literal(tuple(path), SqlType("array", element=SqlType("name")))


def _tables() -> Mapping[str, list[tuple[tuple[str, ...], str]]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for signature, body in TABLES.items():
        name, _, types = signature.removesuffix(")").partition("(")
        found.setdefault(name, []).append((tuple(types.split(", ") if types else ()), body))
    return found


#: Functions that yield rows: name -> of each of its overloads the declared types of the arguments, and the query.
_TABLES: Final = _tables()
TABLE_NAMES: Final = frozenset(_TABLES)
#: Of these, those with more than one column.
_RECORDS: Final = TABLE_NAMES - {"pg_partition_ancestors", "pg_listening_channels"}


def bind_table_call(env: Environment, node: Any) -> BoundQuery | None:
    """The rows of a function about the catalog; None for any other."""
    name = names_of(node.funcname)[-1]
    arguments = [env.bind(item) for item in node.args or ()]
    overloads = _TABLES[name]
    if len(overloads) > 1:
        found = chosen_function(name, tuple(item.type.oid for item in arguments))
        overloads = [item for item in overloads if isinstance(found, tuple) and item[0] == tuple(found[1])]
    if not overloads or len(arguments) != len(overloads[0][0]):
        return None
    declared, body = overloads[0]
    with arguments_of(env.binding, _given(env, node, arguments, declared)):
        return Level(env.binding).bind(query_node(body))


def _given(env: Environment, node: Any, arguments: Sequence[Scalar], declared: Sequence[str]) -> list[Scalar]:
    """A call's arguments in their declared types. Raises 42883."""
    places = node.args or (None,) * len(arguments)
    found = [_coerced(env, *item) for item in zip(arguments, declared, places, strict=False)]
    given = [item for item in found if item is not None]
    if len(given) < len(found):
        raise no_function(env, list(arguments), node)
    return given


def _coerced(env: Environment, scalar: Scalar, declared: str, node: Any) -> Scalar | None:
    if declared == "anyarray" or declared == scalar.type.name == "record":
        return scalar
    kind = array(by_name(declared[1:])) if declared.startswith("_") else by_name(declared)
    return coerce(env.binding, scalar, kind, "implicit", node)


def _are_names(items: tuple[Any, ...]) -> bool:
    return all(type(item).__name__ == "String" for item in items)


def bind_field(env: Environment, node: Any) -> Scalar | None:
    """(f(x)).field in a select list, of a function that yields rows; None for any other selection."""
    call, selected = node.arg, node.indirection
    if type(call).__name__ == "ColumnRef" and _are_names((*call.fields, *selected)):
        names = names_of(call.fields)
        record = field_name(names[-1], selected[0].sval)
        if any(
            entry.name == record for level in env.scope.levels() for item in level.sources for entry in item.entries
        ):
            return resolve(env.binding, env.scope, (*names[:-1], record), call).scalar
        return None
    if type(call).__name__ != "FuncCall" or names_of(call.funcname)[-1] not in TABLE_NAMES or env.sets is None:
        return None
    if len(selected) != 1 or type(selected[0]).__name__ != "String":
        return None
    name = selected[0].sval
    values = dict(bind_lists(env.without_sets(name), call))
    if name not in values:
        raise env.error("42703", f'column "{name}" not found in data type record', node)
    return ColumnRef(env.sets.add(env.binding, name, values[name]))


def yields_rows(node: Any) -> bool:
    """Whether a function about the catalog yields rows of several columns."""
    return names_of(node.funcname)[-1] in _RECORDS


def bind_record(env: Environment, node: Any, name: str) -> Iterator[tuple[str, Scalar]]:
    """A row of such a function as an item of a subquery's select list: its fields, each a column of its own, which
    ``field_name`` names. (A row is no value; what selects its fields finds them so.)
    """
    if not env.binding.in_from or env.sets is None:
        instead = "Name its columns, or call it in FROM."
        raise unsupported(f"{names_of(node.funcname)[-1]}() as a row", instead, env.binding.position(node))
    for field, values in bind_lists(env.without_sets(name), node):
        yield field_name(name, field), ColumnRef(env.sets.add(env.binding, field, values))


def field_name(record: str, field: str) -> str:
    """The name of a column that is a row's field; no client can write it."""
    return f"{record}\0{field}"


def bind_lists(env: Environment, node: Any) -> Iterator[tuple[str, Scalar]]:
    """The columns of a function that yields rows, each as an array."""
    query = bind_table_call(env, node)
    if query is None:
        raise no_function(env, [env.bind(item) for item in node.args or ()], node)
    for place, output in enumerate(query.outputs):
        again = query if place == 0 else bind_table_call(env, node)
        assert again is not None
        column = again.relation.columns[place]
        one = Project(again.relation, ((env.binding.column(output.name, column.type), ColumnRef(column)),))
        yield output.name, array_of_query(env, one, node)
