"""Functions that ask for privileges: has_table_privilege(), pg_has_role() and the like.

Owns: the role, the object and the privilege that a call asks for, and the SQL that looks the grant up. Objects without
grants have PostgreSQL's initial ones: PUBLIC may use languages and servers, and only superusers tablespaces and
parameters.

https://www.postgresql.org/docs/15/functions-info.html#FUNCTIONS-INFO-ACCESS-TABLE
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from catalog.objects import FIRST_OID
from catalog.privileges import (
    LETTERS,
    OF_COLUMN,
    OF_DATABASE,
    OF_FUNCTION,
    OF_SCHEMA,
    OF_SEQUENCE,
    OF_TABLE,
    OF_TYPE,
)
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import is_the_database
from catalog.values.types import BOOL, OID, TEXT, SqlType
from planner.algebra.nodes import Call, Cast, Literal, Scalar
from planner.bind.conversion.named_oids import named_oid
from planner.bind.conversion.requirements import required
from planner.bind.state.environment import Environment

#: Binds a body of SQL, over arguments, of a type.
Body = Callable[[str, Sequence[Scalar], SqlType], Scalar]
_DATABASE: Final = "database"
#: How the name of what is asked about is read; functions of other kinds of objects are true.
_NAMED: Final = {
    "has_table_privilege": "regclass",
    "has_any_column_privilege": "regclass",
    "has_column_privilege": "regclass",
    "has_sequence_privilege": "regclass",
    "has_function_privilege": "regprocedure",
    "has_type_privilege": "regtype",
    "has_schema_privilege": "regnamespace",
    "has_database_privilege": _DATABASE,
    "pg_has_role": "regrole",
}
#: Those about what is its owner's alone.
_OWNERS: Final = ("has_tablespace_privilege", "has_parameter_privilege")
#: All privileges of what a function is about.
_EVERY: Final = {
    "has_table_privilege": OF_TABLE,
    "has_any_column_privilege": OF_COLUMN,
    "has_column_privilege": OF_COLUMN,
    "has_sequence_privilege": OF_SEQUENCE,
    "has_function_privilege": OF_FUNCTION,
    "has_type_privilege": OF_TYPE,
    "has_schema_privilege": OF_SCHEMA,
    "has_database_privilege": OF_DATABASE,
}
#: Where what a function is about is listed, the column of its name, and what errors call it.
_CATALOGS: Final = {
    **dict.fromkeys(
        ("has_table_privilege", "has_any_column_privilege", "has_column_privilege", "has_sequence_privilege"),
        ("pg_class", "relname", "relation"),
    ),
    "has_function_privilege": ("pg_proc", "proname", "function"),
    "has_type_privilege": ("pg_type", "typname", "type"),
    "has_schema_privilege": ("pg_namespace", "nspname", "schema"),
    "has_database_privilege": ("pg_database", "datname", "database"),
    "has_language_privilege": ("pg_language", "lanname", "language"),
    "has_tablespace_privilege": ("pg_tablespace", "spcname", "tablespace"),
    "has_foreign_data_wrapper_privilege": ("pg_foreign_data_wrapper", "fdwname", "foreign-data wrapper"),
    "has_server_privilege": ("pg_foreign_server", "srvname", "server"),
}
_ROLE: Final = "(SELECT r.oid FROM pg_authid r WHERE r.rolname = $1)"
_HELD: Final = "EXISTS (SELECT FROM pg_lookups.held_privileges h WHERE h.role = $1 AND h.target = $2 AND ({}))"
_OF_COLUMN: Final = " OR EXISTS (SELECT FROM pg_lookups.held_columns h WHERE h.role = $1 AND h.target = $2{} AND ({}))"
_SYSTEM: Final = f"$2 < {FIRST_OID} OR "
_MEMBER: Final = "EXISTS (SELECT FROM pg_lookups.memberships m WHERE m.member = $1 AND m.role = $2 AND ({}))"
#: What membership means by pg_has_role()'s words (convert_role_priv_string).
_MEMBERSHIPS: Final = {
    "USAGE": "m.inherited",
    "MEMBER": "true",
    **{f"{word} WITH {what} OPTION": "m.admin" for word in ("USAGE", "MEMBER") for what in ("GRANT", "ADMIN")},
}


def bind_privilege_call(env: Environment, name: str, given: list[Scalar], body: Body) -> Scalar:
    """A call over coerced arguments. Raises 22023, 42704, 42P01 and 3F000."""
    three = 4 if name == "has_column_privilege" else 3
    asked, rest = (given[0], given[1:]) if len(given) == three else (None, given)
    if any(isinstance(item, Literal) and item.value is None for item in given):
        return Literal(None, BOOL)
    role, words = _role(env, asked, body), rest[-1]
    target = _target(env, rest[0], _NAMED[name], body) if name in _NAMED else None
    kinds = _kinds(name, words) if name in _NAMED and isinstance(words, Literal) else None
    if name == "pg_has_role" and not isinstance(words, Literal):
        raise unsupported(f"{name}() of a computed privilege", "Write the privilege as a constant.")
    if name == "has_column_privilege" and target is not None:
        _require_column(env, target, rest[1])
    if role is None or target is None:
        verdict = _allowed(given, role is None or name not in _OWNERS)
    else:
        verdict = _looked_up(name, role, target, rest, kinds, body)
    if name == "has_column_privilege" and target is not None:
        verdict = _of_a_column(target, rest[1], verdict, body)
    return _of_what_there_is(name, rest, verdict, body)


def _looked_up(
    name: str, role: Scalar, target: Scalar, rest: list[Scalar], kinds: list[str] | None, body: Body
) -> Scalar:
    """Whether a role that is no superuser has a privilege."""
    words = rest[-1]
    if not isinstance(words, Literal):
        raise unsupported(f"{name}() of a computed privilege", "Write the privilege as a constant.")
    assert kinds is not None, "words that are not NULL name some"
    if name == "pg_has_role":
        return body(_MEMBER.format(" OR ".join(_MEMBERSHIPS[kind] for kind in kinds)), (role, target), BOOL)
    listed = " OR ".join(f"strpos(h.words, ',{kind},') > 0" for kind in kinds)
    system = name in ("has_function_privilege", "has_type_privilege") or (
        "SELECT" in kinds and _NAMED[name] == "regclass"
    )
    text = (_SYSTEM if system else "") + _HELD.format(listed)
    if name == "has_any_column_privilege":
        text += _OF_COLUMN.format("", listed)
    if name == "has_column_privilege":
        column = "h.place = $3" if rest[1].type.name == "int2" else "h.name = $3::text"
        text += _OF_COLUMN.format(f" AND {column}", listed)
    return body(text, (role, target, rest[1]), BOOL)


def _of_what_there_is(name: str, rest: list[Scalar], verdict: Scalar, body: Body) -> Scalar:
    """A verdict; NULL of an oid that nothing has, and an error of a name that nothing has.

    A computed oid is one of the catalog's, from which it was read.
    """
    if name not in _CATALOGS or not _is_constant(rest[0]):
        return verdict
    catalog, column, word = _CATALOGS[name]
    if rest[0].type.name == "oid":
        return body(
            f"CASE WHEN EXISTS (SELECT FROM {catalog} c WHERE c.oid = $1) THEN $2 END", (rest[0], verdict), BOOL
        )
    if name in _NAMED:  # whose names are read before
        return verdict
    found = body(f"EXISTS (SELECT FROM {catalog} c WHERE c.{column} = $1::text)", (rest[0],), BOOL)
    return required(found, verdict, "42704", f"{word} does not exist")


def _of_a_column(target: Scalar, column: Scalar, verdict: Scalar, body: Body) -> Scalar:
    """A verdict; NULL of a number that no column of the relation has, and an error of a computed name."""
    if column.type.name == "int2":
        place = "a.attrelid = $1 AND a.attnum = $2 AND NOT a.attisdropped"
        text = f"CASE WHEN EXISTS (SELECT FROM pg_attribute a WHERE {place}) THEN $3 END"
        return body(text, (target, column, verdict), BOOL) if _is_constant(column) else verdict
    if _is_constant(column):
        return verdict
    text = "$2 IS NULL OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2::text)"
    return required(body(text, (target, column), BOOL), verdict, "42703", "column does not exist")


def _is_constant(scalar: Scalar) -> bool:
    return isinstance(scalar.argument if isinstance(scalar, Cast) else scalar, Literal)


def _kinds(name: str, words: Literal) -> list[str] | None:
    """The privileges that are asked about; None for NULL. Raises 22023 for what there is not of such an object."""
    if words.value is None:
        return None
    kinds = [" ".join(part.upper().split()) for part in str(words.value).split(",")]
    if _NAMED[name] == _DATABASE:
        kinds = ["TEMPORARY" if kind == "TEMP" else kind for kind in kinds]
    for kind, written in zip(kinds, str(words.value).split(","), strict=True):
        if (name, kind) == ("has_table_privilege", "RULE"):  # a privilege until PostgreSQL 8.2, which no role has
            continue
        letter = LETTERS.get(kind.removesuffix(" WITH GRANT OPTION"), " ")
        if (kind not in _MEMBERSHIPS) if name == "pg_has_role" else (letter not in _EVERY[name]):
            raise SqlError("22023", f'unrecognized privilege type: "{written.strip()}"')
    return kinds


def _require_column(env: Environment, target: Scalar, column: Scalar) -> None:
    """Raises 42703 where a relation that is known now has no column of a name."""
    column = column.argument if isinstance(column, Cast) else column
    oid = target.value if isinstance(target, Literal) and isinstance(target.value, int) else 0
    item = env.binding.context.catalog.objects.get(oid)
    if item is None or not isinstance(column, Literal) or not isinstance(column.value, str):
        return
    if all(each.name != column.value for each in item.columns):
        raise SqlError("42703", f'column "{column.value}" of relation "{item.name}" does not exist')


def _role(env: Environment, asked: Scalar | None, body: Body) -> Scalar | None:
    """Whose privileges are asked for; None of a superuser that is known now."""
    roles = env.binding.context.catalog.roles
    if asked is None:
        found = roles.find(env.binding.context.role)
        return None if found is not None and found.superuser else Literal(found.oid if found else 0, OID)
    if isinstance(asked, Cast) and isinstance(asked.argument, Literal) and isinstance(asked.argument.value, str):
        asked = asked.argument
    if isinstance(asked, Literal) and isinstance(asked.value, str):
        if asked.value == "public":
            return Literal(0, OID)
        named = roles.find(asked.value)
        if named is None:
            raise SqlError("42704", f'role "{asked.value}" does not exist')
        return None if named.superuser else Literal(named.oid, OID)
    return asked if asked.type.name == "oid" else body(_ROLE, (asked,), OID)


def _target(env: Environment, scalar: Scalar, kind: str, body: Body) -> Scalar:
    """The oid of what is asked about."""
    if scalar.type.name == "oid":
        oid = scalar.argument if isinstance(scalar, Cast) else scalar
        return Literal(oid.value, OID) if isinstance(oid, Literal) and isinstance(oid.value, int) else scalar
    value = scalar.argument if isinstance(scalar, Cast) and isinstance(scalar.argument, Literal) else scalar
    if kind == _DATABASE:
        own = env.binding.context.database
        if isinstance(value, Literal) and value.value is not None:
            if not is_the_database(own, str(value.value)):
                raise SqlError("3D000", f'database "{value.value}" does not exist')
            scalar = Literal(own, TEXT)
        return body("(SELECT d.oid FROM pg_database d WHERE d.datname = $1::text)", (scalar,), OID)
    if isinstance(value, Literal) and value.value is not None:
        return Literal(named_oid(env.binding, str(value.value), kind), OID)
    return body(f"to_{kind}($1::text)::oid", (scalar,), OID)


def _allowed(arguments: list[Scalar], verdict: bool = True) -> Scalar:
    """True, or False; NULL of NULL, which the oid of nothing is not."""
    known = [Call("is_not_null", (item,), BOOL) for item in arguments if not isinstance(item, Literal)]
    if not known:
        return Literal(verdict, BOOL)
    every = known[0] if len(known) == 1 else Call("and", tuple(known), BOOL)
    no = Literal(False, BOOL)
    return Call("nullif", (every, no) if verdict else (no, every), BOOL)
