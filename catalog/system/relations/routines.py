"""User-defined functions in pg_proc, their signatures, and pg_get_functiondef().

Owns: the rows of functions of LANGUAGE sql. PostgreSQL's own functions are data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from catalog.catalog import Catalog
from catalog.routines import Argument, Function, every
from catalog.system.own_objects import default_text, prefix, rights_of, schema_oid
from catalog.system.rows import Row
from catalog.values.identifiers import quote_name

_SQL: Final = 14
_VOLATILITIES: Final = {"i": " IMMUTABLE", "s": " STABLE", "v": ""}
_PARALLEL: Final = {"s": " PARALLEL SAFE", "r": " PARALLEL RESTRICTED", "u": ""}


def _own(catalog: Catalog) -> Iterator[Function]:
    """Functions that are not members of an extension; the rows of members are data
    (``catalog.system.relations.extension_members``)."""
    return (item for item in every(catalog.functions) if not item.extension)


def pg_proc(catalog: Catalog) -> Iterator[Row]:
    """User-defined functions."""
    for item in _own(catalog):
        owner, acl = rights_of(catalog, item.oid)
        every_argument = (*item.arguments, *item.columns)
        names = [argument.name for argument in every_argument]
        defaults = [_default(catalog, argument) for argument in item.arguments if argument.default is not None]
        yield {
            "oid": item.oid,
            "proname": item.name,
            "pronamespace": schema_oid(catalog, item.schema),
            "proowner": owner,
            "prolang": _SQL,
            "procost": 100.0,
            "prokind": "f",
            "proisstrict": item.strict,
            "proleakproof": item.leakproof,
            "provolatile": item.volatility,
            "proparallel": item.parallel,
            "proretset": item.returns_set,
            "prorows": 1000.0 if item.returns_set else 0.0,
            "proallargtypes": [argument.type for argument in every_argument] if item.columns else None,
            "proargmodes": ["i"] * len(item.arguments) + ["t"] * len(item.columns) if item.columns else None,
            "pronargs": len(item.arguments),
            "pronargdefaults": len(defaults),
            "prorettype": item.result,
            "proargtypes": list(item.types),
            "proargnames": names if any(names) else None,
            "proargdefaults": ", ".join(defaults) or None,
            "prosrc": "" if item.returns else item.body,
            "prosqlbody": f"RETURN {item.body}" if item.returns else None,
            "proacl": acl,
        }


def own_signatures(catalog: Catalog, names: Mapping[int, str]) -> Iterator[Row]:
    """The texts of pg_get_function_arguments() and similar functions, and the whole definition; ``names`` are the
    types' names by oid, with ``own_objects.MARK``."""

    def declared(argument: Argument) -> str:
        kind = names[argument.type]
        return f"{quote_name(argument.name)} {kind}" if argument.name else kind

    def with_default(argument: Argument) -> str:
        return declared(argument) + ("" if argument.default is None else f" DEFAULT {_default(catalog, argument)}")

    for item in _own(catalog):
        identity = ", ".join(map(declared, item.arguments))
        arguments = ", ".join(map(with_default, item.arguments))
        if item.columns:
            result = f"TABLE({', '.join(map(declared, item.columns))})"
        else:
            result = ("SETOF " if item.returns_set else "") + names[item.result]
        definition = _definition(item, arguments, result)
        yield {"oid": item.oid, "arguments": arguments, "identity": identity, "result": result,
               "definition": definition}  # fmt: skip


def own_names(catalog: Catalog, names: Mapping[int, str]) -> Iterator[Row]:
    """User-defined functions by name, as regproc and regprocedure show them; ``names`` are the types' names by oid.

    Both contain ``own_objects.MARK``. The parenthesis after a name marks a function; regproc omits it.
    """
    for item in _own(catalog):
        alone = f"{prefix(item.schema)}{quote_name(item.name)}("
        overloads = [other for other in catalog.functions[item.name] if other.schema == item.schema]
        shown = alone if len(overloads) == 1 else f"{quote_name(item.schema)}.{quote_name(item.name)}"
        types = ",".join(names[oid] for oid in item.types)
        yield {"oid": item.oid, "shown": shown, "alone": alone, "types": f"{types})"}


def _default(catalog: Catalog, argument: Argument) -> str:
    return default_text(catalog, argument.default or "")


def _definition(item: Function, arguments: str, result: str) -> str:
    """CREATE OR REPLACE FUNCTION in the layout of pg_get_functiondef()."""
    words = _VOLATILITIES[item.volatility] + _PARALLEL[item.parallel]
    words += (" STRICT" if item.strict else "") + (" LEAKPROOF" if item.leakproof else "")
    mark = "function"
    while f"${mark}$" in item.body:
        mark += "x"
    body = f"RETURN {item.body}" if item.returns else f"AS ${mark}${item.body}${mark}$"
    name = f"{quote_name(item.schema)}.{quote_name(item.name)}"
    head = f"CREATE OR REPLACE FUNCTION {name}({arguments})\n RETURNS {result}\n LANGUAGE sql"
    return "\n".join([head, *([words] if words else []), body, ""])
