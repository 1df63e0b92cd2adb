"""Functions that make rows of documents: json_to_record(set), json_populate_record(set), and those of jsonb.

Owns: the expressions of their fields: a field is read from the document by its name, and converted as the input
function of its type reads a text (populate_record_field() in jsonfuncs.c). Functions of sets first make a set of
documents::

    json_to_recordset(d) AS x (a int, b text)   =   Project(Unnest(json_records(d) AS e), (e ->> 'a')::int, e ->> 'b')
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, JSON, JSONB, TEXT, SqlType, array, shaped
from planner.algebra.nodes import Call, Case, Cast, ColumnRef, Literal, Project, Relation, Scalar, Unnest, Values
from planner.bind.calls.overloading.choice import NO_MATCH
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.domains import element_of, has_domains, into_domain, into_type, is_constrained
from planner.bind.conversion.rows import field_of
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import check_collation, declared_typmod, display, shown_domain, type_or_domain
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Output

#: Names, types and domains.
Fields = tuple[tuple[str, SqlType, int], ...]

#: Functions that give a row, and that give a set of them; of each those whose fields the call's alias declares.
_DECLARED: Final = frozenset(f"{kind}_to_record{ending}" for kind in ("json", "jsonb") for ending in ("", "set"))
_POPULATED: Final = frozenset(name.replace("_to_", "_populate_") for name in _DECLARED)
FUNCTIONS: Final = _DECLARED | _POPULATED
#: The function of PostgreSQL's that an error names where a document is no object.
_REFUSING: Final = "populate_composite"


def is_of_rows(node: Any) -> bool:
    """Whether a parse node is a call of one of ``FUNCTIONS``."""
    return type(node).__name__ == "FuncCall" and names_of(node.funcname)[-1] in FUNCTIONS


def bind_rows(env: Environment, node: Any, definitions: tuple[Any, ...] | None) -> tuple[BoundQuery, SqlType | None]:
    """A call in FROM; ``definitions`` are the columns that its alias declares.

    With the type of the rows, where it is known. Raises 42601.
    """
    name = names_of(node.funcname)[-1]
    base, document = _arguments(env, name, node)
    fields = tuple(_field(env, item) for item in definitions or ())
    if base is not None and (not definitions or _is_named(base)):
        fields = _declared(base.type)
    if (base is None or not _is_named(base)) != bool(definitions):
        if definitions:
            message = "a column definition list is redundant for a function returning a named composite type"
            raise env.error("42601", message, definitions[0])
        raise env.error("42601", 'a column definition list is required for functions returning "record"', node)
    relation: Relation = Values((), ((),))
    if name.endswith("set"):
        element = env.binding.column(name, document.type)
        relation = Unnest(relation, ((element, _records(name, document)),))
        document = ColumnRef(element)
    else:
        document = _record(document)
    if base is not None and [kind for _, kind, _ in fields] != [kind for _, kind, _ in _declared(base.type)]:
        raise SqlError("42804", "function return row and query-specified return row do not match")
    values = _values(env, document, fields if base is None else _declared(base.type), base)
    outputs = tuple(
        (env.binding.column(label, kind), value) for (label, kind, _), value in zip(fields, values, strict=True)
    )
    found = tuple(Output(label, kind, declared_typmod(kind)) for label, kind, _ in fields)
    return BoundQuery(Project(relation, outputs), found), None if base is None else base.type


def _field(env: Environment, node: Any) -> tuple[str, SqlType, int]:
    kind, domain = type_or_domain(env.binding, node.typeName)
    if node.collClause is not None:
        check_collation(env.binding, node.collClause, kind)
    return node.colname, kind, domain


def bind_row_call(env: Environment, node: Any) -> Scalar:
    """A call in an expression: its row, or each row of its set. Raises 42601 and 0A000."""
    name = names_of(node.funcname)[-1]
    if name in _DECLARED:
        hint = "Provide column definitions in FROM: AS alias (name type, ...)."
        raise env.error("0A000", f"could not determine row type for result of {name}", None, hint=hint)
    is_set = name.endswith("set")
    if is_set and (env.sets is None or env.in_aggregate or env.in_window):
        raise unsupported(f"{name}() in this place", "Put it into FROM.", env.binding.position(node))
    base, document = _arguments(env.without_sets(name), name, node)
    if base is None:
        instead = "call the function in the FROM clause using a column definition list."
        hint = f"Provide a non-null record argument, or {instead}"
        raise env.error("0A000", f"could not determine row type for result of {name}", None, hint=hint)
    if is_set:
        assert env.sets is not None
        document = ColumnRef(env.sets.add(env.binding, name, _records(name, document)))
        env.binding.remember(document, node, name)
    else:
        document = _record(document)
    row = Call("row", tuple(_values(env, document, _declared(base.type), base)), base.type)
    return Case(
        ((Call("is_null", (document,), BOOL), base if not is_set else Literal(None, base.type)),), row, row.type
    )


def _arguments(env: Environment, name: str, node: Any) -> tuple[Scalar | None, Scalar]:
    """The row that a call begins with, if it takes one that is not NULL::record, and the document.

    Raises 42883, 42804 and 0A000.
    """
    nodes: tuple[Any, ...] = node.args or ()
    wanted = 1 if name in _DECLARED else 2
    is_unknown = wanted == 2 == len(nodes) and _is_null_record(nodes[0])
    given = [Literal(None, SqlType("unknown")) if is_unknown and item is nodes[0] else env.bind(item) for item in nodes]
    kind = JSONB if name.startswith("jsonb") else JSON
    document = coerce(env.binding, given[-1], kind, "implicit", nodes[-1]) if len(given) == wanted else None
    if document is None:
        shown = ", ".join(display(item.type) for item in given)
        raise env.error("42883", f"function {name}({shown}) does not exist", node, hint=NO_MATCH)
    if wanted == 1 or is_unknown:
        return None, document
    if given[0].type.row is None:
        raise SqlError("42804", f"first argument of {name} must be a row type")
    _refuse_domain(env, name, nodes[0])
    return given[0], document


def _refuse_domain(env: Environment, name: str, node: Any) -> None:
    """The document's rows would be of the domain, too."""
    domain = type_or_domain(env.binding, node.typeName)[1] if type(node).__name__ == "TypeCast" else 0
    if is_constrained(env.binding, domain):
        instead = "Begin with a row of its base type, and cast the result to the domain."
        shown = shown_domain(env.binding, domain)
        raise unsupported(f"a row of domain {shown} as argument of {name}()", instead, env.binding.position(node))


def _is_null_record(node: Any) -> bool:
    """NULL::record, a row of which nothing is known."""
    if type(node).__name__ != "TypeCast" or type(node.arg).__name__ != "A_Const" or not node.arg.isnull:
        return False
    return names_of(node.typeName.names)[-1] == "record" and not node.typeName.arrayBounds


def _is_named(base: Scalar) -> bool:
    """Whether a row is of a type that has a name."""
    return base.type.row is not None and bool(base.type.row.oid)


def _record(document: Scalar) -> Scalar:
    return Call("json_record", (document, Literal(_REFUSING, TEXT)), document.type)


def _records(name: str, document: Scalar) -> Scalar:
    return Call("json_records", (document, Literal(name, TEXT)), array(document.type))


def _declared(kind: SqlType) -> Fields:
    assert kind.row is not None
    return tuple((name, inner, kind.row.domain(place)) for place, (name, inner) in enumerate(kind.row.fields))


def _items(env: Environment, part: Scalar, kind: SqlType, element: SqlType, depth: int) -> Scalar:
    """The elements of a JSON array as an array; rows are made one by one."""
    is_raw = element.name in ("json", "jsonb") or element.row is not None
    held = part.type if element.row is not None else element
    items: Scalar = Cast(Call("json_array_text", (part, Literal(is_raw, BOOL)), TEXT), shaped(held))
    if element.row is not None:
        items = Cast(items, array(held))
        each = element_of(items, depth)
        written = Call("json_path_text", (each, Literal((), array(TEXT))), TEXT)
        items = Call("for_each", (items, each, _typed(env, each, written, element, depth + 1)), array(element))
    return items if items.type == kind else Cast(items, kind)


def _values(
    env: Environment, document: Scalar, fields: Fields, base: Scalar | None, depth: int = 0
) -> Iterator[Scalar]:
    """The fields that a document gives; one that it does not have is the base's."""
    is_empty = isinstance(base, Literal) and base.value is None
    for place, (name, kind, domain) in enumerate(fields):
        value = into_domain(env.binding, _value(env, document, name, kind, depth), domain)
        if base is None or is_empty:
            yield value
        else:
            missing = Call("is_null", (_part(document, name),), BOOL)
            yield Case(((missing, field_of(base, place)),), value, kind)


def _part(document: Scalar, name: str, as_text: bool = False) -> Scalar:
    kind = TEXT if as_text else document.type
    return Call("json_get_text" if as_text else "json_get", (document, Literal(name, TEXT)), kind)


def _value(env: Environment, document: Scalar, name: str, kind: SqlType, depth: int) -> Scalar:
    """A field in its type."""
    return _typed(env, _part(document, name), _part(document, name, True), kind, depth)


def _typed(env: Environment, part: Scalar, written: Scalar, kind: SqlType, depth: int) -> Scalar:
    """A document, also given as a text, in a type; null is NULL. ``depth`` arrays are around it."""
    if kind.name in ("json", "jsonb"):
        present = Call("is_not_null", (written,), BOOL)
        value = part if part.type == kind else Cast(part, kind, True)
        return Case(((present, value),), Literal(None, kind), kind)
    if kind == TEXT:
        return written
    read: Scalar = Cast(written, kind)
    read = into_type(env.binding, read) if has_domains(kind) else read
    form = Call("json_typeof", (part,), TEXT)
    if kind.element is not None and kind.name in ("array", "shaped"):
        items = _items(env, part, kind, kind.element, depth)
        return Case(((Call("eq", (form, Literal("array", TEXT)), BOOL), items),), read, kind)
    if kind.row is not None:
        inner = Call("row", tuple(_values(env, part, _declared(kind), None, depth)), kind)
        return Case(((Call("eq", (form, Literal("object", TEXT)), BOOL), inner),), read, kind)
    return read
