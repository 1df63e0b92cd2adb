"""Names of types in SQL text become ``SqlType``, with their modifiers.

Owns: PostgreSQL's aliases, numeric(p, s), varchar(n), arrays and the fields of interval. A type that only PostgreSQL
has raises 0A000, an unknown one 42704.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.extensions import BaseType
from catalog.objects import Domain, Sequence, SystemView, UserType, rows_of
from catalog.values.errors import SqlError, unsupported
from catalog.values.forms.bits import LONGEST_DECLARED
from catalog.values.interval_fields import FULL_RANGE
from catalog.values.nested_types import delimiter_of, is_declared
from catalog.values.types import (
    BITS,
    DISPLAY,
    FULL_PRECISION,
    MAX_PRECISION,
    MICROSECONDS,
    NUMERIC,
    OF_EXTENSIONS,
    ROUNDED,
    TYPES,
    Composite,
    SqlType,
    array,
    by_name,
    enum,
    row,
    shaped,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import look_up
from planner.bind.lookup.search_path import find_user_type
from planner.bind.state.bind_state import BindState

#: In the place of a schema: the name is a user's type's oid, as in the texts that the catalog keeps.
BY_OID: Final = "pg_type"
_ALIASES: Final = {"decimal": "numeric", "int": "int4", "integer": "int4", "string": "text"}
#: information_schema's domains, as the protocol shows them.
_DOMAINS: Final = {
    "sql_identifier": SqlType("name"),
    "character_data": SqlType("varchar"),
    "cardinal_number": SqlType("int4"),
    "yes_or_no": SqlType("varchar", (3,)),
    "time_stamp": SqlType("timestamptz", (2,)),
}
_KNOWN: Final = frozenset(TYPES) - {"unknown"} - OF_EXTENSIONS
_FOREIGN: Final = frozenset(("record",))


def type_of(binding: BindState, node: Any) -> SqlType:
    """The type that a TypeName node names, where no domain may stand."""
    kind, domain = type_or_domain(binding, node)
    if domain:
        instead = "Use its base type."
        shown = shown_domain(binding, domain)
        raise unsupported(f"domain {shown} in this place", instead, binding.position(node))
    return kind


def shown_domain(binding: BindState, oid: int) -> str:
    """The name of a domain, or of the type of its arrays."""
    return f"{binding.context.catalog.domain(oid | 1)}{'' if oid % 2 else '[]'}"


def type_or_domain(binding: BindState, node: Any) -> tuple[SqlType, int]:
    """The type that a TypeName node names: a domain's base type, or an array of that, and the oid of the domain, or of
    the type of its arrays; 0 where it names none.
    """
    names, is_array = _elements(binding, node)
    *schema, written = names
    name = _ALIASES.get(written, written)
    position = binding.position(node)
    if node.setof or node.pct_type:
        raise unsupported("SETOF and %TYPE", position=position)
    if name in ("serial", "bigserial", "smallserial", "serial4", "serial8", "serial2"):
        raise SqlError("42704", f'type "{written}" does not exist', position=position)
    if names[0] == "information_schema" and name in _DOMAINS:
        return array(_DOMAINS[name]) if is_array else _DOMAINS[name], 0
    declared = find_declared(binding, names)
    if declared is not None:
        return _of_user(binding, node, declared, is_array)
    of_rows = None if name in _KNOWN | _FOREIGN else _of_relation(binding, written, schema[-1] if schema else None)
    if of_rows is not None:
        return (array(of_rows) if is_array else of_rows), 0
    if schema not in ([], ["pg_catalog"]):
        raise unknown_type(binding, names, position)
    if name in _FOREIGN:
        raise unsupported(f"type {name}", "Use another type, or text.", position)
    if name not in _KNOWN or (name == "void" and is_array):
        raise SqlError("42704", f'type "{".".join(names)}" does not exist', position=position)
    kind = _modified(name, _modifiers(node), position)
    return (_array(node, kind) if is_array else kind), 0


def _of_relation(binding: BindState, name: str, schema: str | None) -> SqlType | None:
    """The type of a relation's rows, which has its name."""
    found = look_up(binding, name, schema)
    if found is None or isinstance(found, SystemView | Sequence):
        return None
    binding.depends_on[found.oid] = None
    return row(rows_of(found))


def _elements(binding: BindState, node: Any) -> tuple[tuple[str, ...], bool]:
    """The names of a TypeName node, and whether an array of that is meant: also by its own name, as in _int4."""
    names = names_of(node.names)
    inner = (*names[:-1], names[-1].removeprefix("_"))
    if inner == names or find_declared(binding, names) is not None:
        return names, bool(node.arrayBounds)
    known = inner[-1] in _KNOWN or find_declared(binding, inner) is not None
    return (inner, True) if known else (names, bool(node.arrayBounds))


def oid_of(binding: BindState, node: Any) -> int:
    """The oid of the type that a TypeName node names, a domain's own."""
    names, is_array = _elements(binding, node)
    declared = find_declared(binding, names)
    if declared is None:
        return type_of(binding, node).oid
    if isinstance(declared, Composite):
        return declared.array_oid if is_array else declared.type_oid
    return declared.oid - 1 if is_array else declared.oid


def _of_user(binding: BindState, node: Any, declared: UserType, is_array: bool) -> tuple[SqlType, int]:
    position = binding.position(node)
    if node.typmods:
        raise SqlError("42601", f'type modifier is not allowed for type "{declared.name}"', position=position)
    if isinstance(declared, Domain) and is_array and declared.base.element is not None:
        raise unsupported("an array of a domain over arrays", "Use an array of rows that have one.", position)
    if isinstance(declared, Domain):
        return (_array(node, declared.base), declared.oid - 1) if is_array else (declared.base, declared.oid)
    if isinstance(declared, BaseType):
        kind = by_name(declared.name)
    else:
        kind = row(declared) if isinstance(declared, Composite) else enum(declared)
    return (_array(node, kind) if is_array else kind), 0


def _array(node: Any, element: SqlType) -> SqlType:
    """What is declared with several pairs of brackets may have several dimensions; how many, is not kept."""
    if len(node.arrayBounds or ()) <= 1:
        return array(element)
    if delimiter_of(element) != ",":
        raise unsupported(f"an array of {element} of several dimensions", "Use one dimension.")
    return shaped(element)


def declared_type(binding: BindState, names: tuple[str, ...]) -> UserType:
    """The user's type of a name. Raises 42704 and 3F000."""
    found = find_type(binding, names)
    if found is None:
        raise unknown_type(binding, names)
    return found


def unknown_type(binding: BindState, names: tuple[str, ...], position: int | None = None) -> SqlError:
    """The error of a name that no type has (42704), or whose schema is not there (3F000)."""
    if len(names) > 1 and names[-2] not in binding.context.catalog.schemas:
        return SqlError("3F000", f'schema "{names[-2]}" does not exist', position=position)
    return SqlError("42704", f'type "{".".join(names)}" does not exist', position=position)


def find_type(binding: BindState, names: tuple[str, ...]) -> UserType | None:
    """The user's type of a name, or None; a statement's own names are noted, since a view keeps them."""
    *schema, name = names
    context, written = binding.context, (schema[-1] if schema else "", name)
    if written[0] == BY_OID:
        return context.catalog.declared(int(name)) if name.isdecimal() else None
    oid = None if context.types is None else context.types.get(written)
    if oid is not None:
        return context.catalog.declared(oid)
    found = find_user_type(binding, name, schema[-1] if schema else None)
    if found is not None and not binding.views:
        binding.types[written] = found.oid
    return found


def find_declared(binding: BindState, names: tuple[str, ...]) -> UserType | None:
    """The user's type that a name means where PostgreSQL's own come first, or None."""
    *schema, written = names
    is_own = schema == ["pg_catalog"] or (not schema and _ALIASES.get(written, written) in _KNOWN | _FOREIGN)
    return None if is_own else find_type(binding, names)


def _modifiers(node: Any) -> tuple[int, ...]:
    found = []
    for item in node.typmods or ():
        value = getattr(getattr(item, "val", None), "ival", None)
        if not isinstance(value, int):
            raise SqlError("42601", "type modifiers must be simple constants or identifiers")
        found.append(value)
    return tuple(found)


def _modified(name: str, modifiers: tuple[int, ...], position: int | None) -> SqlType:
    if not modifiers:
        return by_name(name)
    first, *others = modifiers
    match name:
        case "numeric":
            return _numeric(modifiers, position)
        case "varchar" | "bpchar":
            if others or first < 1:
                shown = "char" if name == "bpchar" else name
                raise SqlError("22023", f"length for type {shown} must be at least 1", position=position)
            return SqlType(name, modifiers)
        case name if name in ROUNDED:
            return _rounded(name, modifiers, position)
        case name if name in BITS:
            return _bits(name, modifiers, position)
        case "float8" | "float4":
            return by_name(name)
        case _:
            raise SqlError("42601", f'type modifier is not allowed for type "{name}"', position=position)


def _bits(name: str, modifiers: tuple[int, ...], position: int | None) -> SqlType:
    """(length) of a bit string."""
    length, *others = modifiers
    if others:
        raise SqlError("22023", "invalid type modifier", position=position)
    if length < 1:
        raise SqlError("22023", f"length for type {name} must be at least 1", position=position)
    if length > LONGEST_DECLARED:
        raise SqlError("22023", f"length for type {name} cannot exceed {LONGEST_DECLARED}", position=position)
    return SqlType(name, modifiers)


def _rounded(name: str, modifiers: tuple[int, ...], position: int | None) -> SqlType:
    """(digits) of a time, (fields) and (fields, digits) of an interval; more digits than six are six."""
    most = 2 if name == "interval" else 1
    if len(modifiers) > most:
        words = "invalid INTERVAL type modifier" if name == "interval" else "invalid type modifier"
        raise SqlError("22023", words, position=position)
    if name == "interval" and len(modifiers) == 1:
        return by_name(name) if modifiers[0] == FULL_RANGE else SqlType(name, (*modifiers, FULL_PRECISION))
    *fields, digits = modifiers
    if digits < 0:
        shown = DISPLAY.get(name, name).partition(" ")[0].upper()
        raise SqlError("22023", f"{shown}({digits}) precision must not be negative", position=position)
    return SqlType(name, (*fields, min(digits, MICROSECONDS)))


def with_digits(kind: SqlType, digits: int) -> SqlType:
    """A time's type with so many digits of a second; more than six are six."""
    return SqlType(kind.name, (min(digits, MICROSECONDS),))


def _numeric(modifiers: tuple[int, ...], position: int | None) -> SqlType:
    precision, scale = modifiers[0], modifiers[1] if len(modifiers) > 1 else 0
    if not 1 <= precision <= 1000:
        raise SqlError("22023", f"NUMERIC precision {precision} must be between 1 and 1000", position=position)
    if precision > MAX_PRECISION or not 0 <= scale <= precision:
        raise unsupported(
            f"numeric({precision},{scale})",
            f"Use at most {MAX_PRECISION} digits, with 0 to that many decimals.",
            position,
        )
    return SqlType("numeric", (precision, scale))


#: Collations that order texts by their code points, as the database's own does, and their oids.
_COLLATIONS: Final = {"default": 100, "C": 950, "POSIX": 951, "ucs_basic": 12340}


def check_collation(binding: BindState, node: Any, kind: SqlType | None = None) -> int:
    """The oid of a COLLATE clause's collation, which orders as the database does. Raises 42804 for other types."""
    inner = kind if kind is None or kind.element is None else kind.element
    if inner is not None and inner.category != "S" and inner.name != "unknown":
        name = DISPLAY.get(inner.name, str(inner))
        raise SqlError("42804", f"collations are not supported by type {name}", position=binding.position(node))
    *_, written = names_of(node.collname)
    if written not in _COLLATIONS:
        raise unsupported(f'collation "{written}"', 'Leave it out, or use COLLATE "C".', binding.position(node))
    return _COLLATIONS[written]


def declared_typmod(kind: SqlType) -> int:
    """The type modifier that a client is told of a column or cast declared with this type."""
    while kind.element is not None:
        kind = kind.element
    return -1 if kind == NUMERIC else kind.typmod


def display(kind: SqlType) -> str:
    """A type's name in an error: without modifiers."""
    if kind.element is not None:
        return f"{display(kind.element)}[]"
    if is_declared(kind):
        return str(kind)
    return DISPLAY.get(kind.name, kind.name)
