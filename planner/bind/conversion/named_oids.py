"""Types of oids that are shown by name (regclass, regtype, regproc, ...), from text and to text.

Owns: what a name means in each of these types, with PostgreSQL's errors, and the SQL that an engine runs when the text
or the oid is computed. https://www.postgresql.org/docs/15/datatype-oid.html
"""

from __future__ import annotations

from typing import Any, Final

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, Table, View
from catalog.postgres import functions, operators, rows, type_oids
from catalog.system.functions import READ, SHOWN
from catalog.system.names.oid_names import NAMED
from catalog.system.relations.indexes import indexes_of
from catalog.values.errors import SqlError, undefined_table, unsupported
from catalog.values.identifiers import split_name
from catalog.values.nested_texts import split_array
from catalog.values.types import TEXT, SqlType, array
from planner.algebra.construction import has_subquery
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.conversion.catalog_bodies import bind_body
from planner.bind.conversion.requirements import wrong_for
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.functions import find_function
from planner.bind.lookup.relations import look_up
from planner.bind.lookup.search_path import find_functions, searched
from planner.bind.lookup.type_names import oid_of
from planner.bind.state.bind_state import BindState
from planner.bind.state.context import Context
from planner.bind.state.environment import Binding
from planner.parse.parser import parse

#: What a computed text is that names nothing.
_UNNAMED: Final = {
    "regclass": ("42P01", "relation does not exist"),
    "regtype": ("42704", "type does not exist"),
    "regnamespace": ("3F000", "schema does not exist"),
    "regrole": ("42704", "role does not exist"),
    "regproc": ("42883", "function does not exist"),
}


def shown_oid(binding: Binding, scalar: Scalar) -> Scalar:
    """The text of an oid of a type such as regclass: the name of what it means, else the number."""
    nothing = "0" if scalar.type.name in ("regoper", "regoperator") else "-"
    body = f"coalesce({SHOWN[scalar.type.name]}, CASE WHEN $1::oid = 0 THEN '{nothing}' ELSE $1::oid::text END)"
    text = _computed(binding, body, scalar, TEXT)
    if scalar.type.name == "regclass":
        binding.remember_name(text, lambda: scalar)
    return text


def shown_oids(binding: Binding, scalar: Scalar) -> Scalar:
    """The texts of an array of such oids, as an array."""
    assert scalar.type.element is not None
    shown = (
        f"SELECT array_agg(u.x::{scalar.type.element.name}::text ORDER BY u.o) FROM unnest($1) WITH ORDINALITY u (x, o)"
    )
    body = f"CASE WHEN $1 IS NOT NULL THEN coalesce(({shown}), ARRAY[]::text[]) END"
    return bind_body(binding, body, (scalar,), array(TEXT))


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
    if target.name == "regclass" and (known := binding.relation_named(scalar)) is not None:
        return known
    if body is None:
        raise unsupported(f"a cast of a computed value to {target}", position=binding.position(node))
    number = f"WHEN $1 ~ '^[0-9]+$' THEN $1::oid::{target.name} WHEN $1 = '-' THEN 0::oid::{target.name}"
    found = _computed(binding, f"CASE {number} ELSE {body} END", scalar, target)
    return Call("coalesce", (found, wrong_for(scalar, target, *_UNNAMED[target.name])), target)


def _computed(binding: Binding, body: str, scalar: Scalar, kind: SqlType) -> Scalar:
    """A body over $1, which stands in it several times: once where subqueries would be repeated."""
    if has_subquery(scalar):
        body = f"(SELECT {body.replace('$1', 'given.x')} FROM (SELECT $1 AS x) AS given)"
    return bind_body(binding, body, (scalar,), kind)


def read_oids(binding: Binding, literal: Literal, target: SqlType, node: Any = None) -> Literal:
    """An array's constant text as the oids of what its elements name."""
    assert target.element is not None
    found = [read_oid(binding, Literal(item, TEXT), target.element, node) for item in split_array(str(literal.value))]
    return Literal(tuple(item.value for item in found if isinstance(item, Literal)), target)


def oid_named(context: Context, text: str, kind: str) -> int:
    """The oid that a text names, for a text that is known when a statement runs."""
    if text.strip().isdigit() or text == "-":
        return int(text) if text != "-" else 0
    return named_oid(BindState(parse("SELECT")[0], context), text, kind)


def named_oid(binding: BindState, text: str, kind: str, node: Any = None) -> int:
    """The oid that a name means in a type. Raises 42P01, 42704, 42883, 3F000, and 42725 for a name of several."""
    try:
        return _named_oid(binding, text, kind)
    except SqlError as error:
        error.position = binding.position(node)
        raise


def _named_oid(binding: BindState, text: str, kind: str) -> int:
    match kind:
        case "regclass":
            return _relation(binding, text)
        case "regtype":
            return _type(binding, text)
        case "regproc":
            return _function(binding, text)
        case "regprocedure":
            return _routine(binding, text)
        case "regnamespace":
            return _schema(binding.context.catalog, lone_name(text))
        case "regrole":
            role = binding.context.catalog.roles.find(lone_name(text))
            if role is None:
                raise SqlError("42704", f'role "{text}" does not exist')
            return role.oid
        case "regoper":
            return _operator(binding, text)
        case "regoperator":
            return _operator_of(binding, text)
        case _:
            return _own(binding, text, kind)


def _own(binding: BindState, text: str, kind: str) -> int:
    """What only PostgreSQL's own catalogs name."""
    relation, column, word = NAMED[kind]
    schema, name = _placed_name(binding.context.catalog, text)
    if schema in (None, "pg_catalog"):
        for row in rows(relation):
            if row[column] == name:
                return int(str(row["oid"]))
    if kind == "regcollation":
        raise SqlError("42704", f'collation "{text}" for encoding "UTF8" does not exist')
    raise SqlError("42704", f'{word} "{text}" does not exist')


def _operator(binding: BindState, text: str) -> int:
    schema, _, name = text.strip().rpartition(".")
    known = operators(name) if schema in ("", "pg_catalog") else ()
    if len(known) > 1:
        raise SqlError("42725", f"more than one operator named {text}")
    for operator in known:
        return operator.oid
    raise SqlError("42883", f"operator does not exist: {text}")


def _operator_of(binding: BindState, text: str) -> int:
    """name(left, right), NONE for what a prefix operator has not."""
    head, _, types = text.strip().partition("(")
    schema, _, name = head.strip().rpartition(".")
    operands = [item.strip() for item in types.removesuffix(")").split(",")]
    if not types.endswith(")"):
        raise SqlError("22P02", f"expected a {'right' if types else 'left'} parenthesis")
    if len(operands) < 2:
        hint = "Use NONE to denote the missing argument of a unary operator."
        raise SqlError("42P02", "missing argument", hint=hint)
    if len(operands) > 2:
        raise SqlError("54023", "too many arguments", hint="Provide two argument types for operator.")
    left, right = (0 if item.upper() == "NONE" else _type(binding, item) for item in operands)
    for known in operators(name) if schema in ("", "pg_catalog") else ():
        if (known.left, known.right) == (left, right):
            return known.oid
    raise SqlError("42883", f"operator does not exist: {text}")


def _relation(binding: BindState, text: str) -> int:
    schema, name = _placed_name(binding.context.catalog, text)
    found = look_up(binding, name, schema)
    if found is not None:
        return found.oid
    for each in searched(binding, schema):
        for item in binding.context.catalog.contents(each):
            for index in indexes_of(item) if isinstance(item, Table | View) else ():
                if index.name == name:
                    return index.oid
    raise undefined_table(f"{schema}.{name}" if schema else name)


def _type(binding: BindState, text: str) -> int:
    is_placed = '"' in text or "." in text
    schema, name = _placed_name(binding.context.catalog, text) if is_placed else (None, text.strip().lower())
    if name in type_oids() and schema in (None, "pg_catalog"):
        return type_oids()[name]
    try:
        node = parse(f"SELECT NULL::{text}")[0].node.targetList[0].val.typeName
    except SqlError:
        raise SqlError("42601", f'invalid type name "{text}"') from None
    try:
        return oid_of(binding, node)
    except SqlError:
        raise SqlError("42704", f'type "{text}" does not exist') from None


def _routine(binding: BindState, text: str) -> int:
    """name(types)"""
    try:
        (item,) = parse(f"DROP FUNCTION {text}")[0].node.objects
    except SqlError:
        raise SqlError("22P02", "expected a left parenthesis") from None
    if item.args_unspecified:
        raise SqlError("22P02", "expected a left parenthesis")
    if len(item.objname) > 1:
        _schema(binding.context.catalog, names_of(item.objname)[-2])
    kinds = tuple(_argument(binding, kind) for kind in item.objargs or ())
    for known in functions(names_of(item.objname)[-1]):
        if known.arguments == kinds:
            return known.oid
    try:
        return find_function(binding, item).oid
    except SqlError as error:
        raise SqlError(error.sqlstate, f'function "{text}" does not exist') from None


def _argument(binding: BindState, node: Any) -> int:
    """The oid of an argument's type: also of those that no value has, such as cstring and internal."""
    *schema, name = names_of(node.names)
    known = type_oids().get(f"_{name}" if node.arrayBounds else name) if schema in ([], ["pg_catalog"]) else None
    return oid_of(binding, node) if known is None else known


def _function(binding: BindState, text: str) -> int:
    schema, name = _placed_name(binding.context.catalog, text)
    users = find_functions(binding, name, schema)
    known = functions(name) if schema in (None, "pg_catalog") else ()
    found = [*(item.oid for item in known), *(item.oid for item in users)]
    if not found:
        raise SqlError("42883", f'function "{text}" does not exist')
    only, *others = found
    if others:
        raise SqlError("42725", f'more than one function named "{text}"')
    return only


def check_spelling(text: str, kind: str) -> None:
    """That a text can be the name of something of a type. Raises 42602 and 42601."""
    if kind in ("regnamespace", "regrole"):
        lone_name(text)
    elif kind in ("regclass", "regcollation"):
        split_name(text)
    elif not text.strip():
        if kind == "regtype":
            raise SqlError("42601", f'invalid type name "{text}"')
        raise SqlError("42602", "invalid name syntax")


def lone_name(text: str) -> str:
    """A name that no schema can stand before. Raises 42602."""
    schema, name = split_name(text)
    if schema is not None:
        raise SqlError("42602", "invalid name syntax")
    return name


def _placed_name(catalog: Catalog, text: str) -> tuple[str | None, str]:
    """A schema that there is, or None, and a name. Raises 3F000."""
    schema, name = split_name(text)
    if schema is not None and not (schema == PG_TEMP and catalog.temporary):
        _schema(catalog, schema)
    return schema, name


def _schema(catalog: Catalog, name: str) -> int:
    if name not in catalog.schemas:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    return catalog.schemas[name].oid
