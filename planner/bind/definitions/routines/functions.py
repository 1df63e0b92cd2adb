"""CREATE FUNCTION and DROP FUNCTION of LANGUAGE sql.

Owns: what may be declared, PostgreSQL's errors for it, and what depends on a function. A body is bound once here to
find its errors. ``planner.bind.calls.user_functions`` binds calls.

https://www.postgresql.org/docs/15/sql-createfunction.html
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import DropBehavior, FunctionParameterMode
from pglast.stream import RawStream

from catalog.objects import Domain, Stream, Table, View
from catalog.routines import Argument, Function, every, named
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import RECORD_OID
from planner.algebra.nodes import Column, ColumnRef
from planner.bind.binder import new_binding
from planner.bind.calls.user_functions import body_of, rows_of, value_node
from planner.bind.definitions.dependents import texts_calling
from planner.bind.definitions.expression_texts import expression_text
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.functions import find_function, signature, type_by_oid
from planner.bind.lookup.relations import describe, schema_for
from planner.bind.lookup.type_names import type_of
from planner.bind.privileges import owns
from planner.bind.scalars.stored_expressions import bind_tree
from planner.bind.state.context import within
from planner.bind.state.environment import Binding
from planner.statements.definitions import CreateFunction, DropFunction

_LANGUAGES: Final = {
    "plpgsql": "Write the function as one SELECT with LANGUAGE sql, or run the statements from the client.",
    "c": "Write the function as one SELECT with LANGUAGE sql.",
    "internal": "Write the function as one SELECT with LANGUAGE sql.",
}
_REFUSED: Final = {"set": "SET in a function", "window": "WINDOW", "support": "SUPPORT", "transform": "TRANSFORM"}
_VOLATILITIES: Final = {"immutable": "i", "stable": "s", "volatile": "v"}
_PARALLEL: Final = {"safe": "s", "restricted": "r", "unsafe": "u"}
_POLYMORPHIC: Final = (
    "anyelement",
    "anyarray",
    "anynonarray",
    "anyenum",
    "anycompatible",
    "anycompatiblearray",
    "anyrange",
    "anycompatiblerange",
)


def bind_create_function(binding: Binding, node: Any) -> CreateFunction:
    """CREATE [OR REPLACE] FUNCTION. Raises 0A000, 42P13, 42723, 42704 and what its body raises."""
    *schema, name = names_of(node.funcname)
    if node.is_procedure:
        raise unsupported("CREATE PROCEDURE", "Send its statements from the client.")
    options = {item.defname: item.arg for item in node.options or ()}
    _check_language(node, options)
    arguments = tuple(_arguments(binding, node))
    columns = tuple(_columns(binding, node))
    body = _body(binding, node, options)
    where = schema_for(binding, schema[-1] if schema else None, name)
    catalog = binding.context.catalog
    function = Function(
        catalog.next_oid,
        name,
        arguments,
        _result(binding, node, columns),
        body,
        node.sql_body is not None,
        schema=where,
        returns_set=bool(node.returnType.setof),
        columns=columns,
        **attributes_of(options),
    )
    before = next((item for item in named(catalog.functions, name, (where,)) if item.types == function.types), None)
    if before is not None:
        function = replace(function, oid=before.oid, comment=before.comment)
        _check_replaced(binding, node, before, function)
    if binding.context.checks_bodies or function.returns:
        _check_body(binding, function)
    return CreateFunction(function, before)


def attributes_of(options: dict[str, Any]) -> dict[str, Any]:
    """Volatility and the like, of those that are given, as fields of ``Function``. Raises 0A000."""
    if "security" in options and options["security"].boolval:
        raise unsupported("SECURITY DEFINER", "Read a view whose owner has the privileges.")
    for word, shown in _REFUSED.items():
        if word in options:
            raise unsupported(shown, "Leave it out.")
    found: dict[str, Any] = {word: bool(options[word].boolval) for word in ("strict", "leakproof") if word in options}
    if "volatility" in options:
        found["volatility"] = _VOLATILITIES[options["volatility"].sval]
    if "parallel" in options:
        found["parallel"] = _parallel(options["parallel"].sval)
    return found


def _check_language(node: Any, options: dict[str, Any]) -> None:
    if "language" not in options and node.sql_body is None:
        raise SqlError("42P13", "no language specified")
    language = options["language"].sval.lower() if "language" in options else "sql"
    if language in _LANGUAGES:
        raise unsupported(f"a function of language {language}", _LANGUAGES[language])
    if language != "sql":
        raise SqlError("42704", f'language "{language}" does not exist')


def _parallel(word: str) -> str:
    if word.lower() not in _PARALLEL:
        raise SqlError("42601", 'parameter "parallel" must be SAFE, RESTRICTED, or UNSAFE')
    return _PARALLEL[word.lower()]


def _body(binding: Binding, node: Any, options: dict[str, Any]) -> str:
    """The text between the quotes, or the expression behind RETURN."""
    if node.sql_body is None:
        if "as" not in options:
            raise SqlError("42P13", "no function body specified")
        return str(options["as"][0].sval)
    if "as" in options:
        raise SqlError("42P13", "duplicate function body specified")
    if type(node.sql_body).__name__ != "ReturnStmt":
        raise unsupported("BEGIN ATOMIC", "Write RETURN and an expression, or a quoted SELECT.")
    return str(RawStream()(node.sql_body.returnval))


def _arguments(binding: Binding, node: Any) -> Iterator[Argument]:
    names: set[str] = set()
    defaults = False
    for item in node.parameters or ():
        position = binding.position(item)
        mode = FunctionParameterMode(item.mode)
        if mode == FunctionParameterMode.FUNC_PARAM_TABLE:
            continue
        if mode not in (FunctionParameterMode.FUNC_PARAM_IN, FunctionParameterMode.FUNC_PARAM_DEFAULT):
            words = mode.name.removeprefix("FUNC_PARAM_")
            raise unsupported(f"{words} parameters", "Return one value, or SETOF rows.", position)
        name = item.name or ""
        if name and name in names:
            raise SqlError("42P13", f'parameter name "{name}" used more than once')
        names.add(name)
        kind = _type(binding, item.argType, "takes")
        default = None
        if item.defexpr is not None:
            declared = type_by_oid(binding.context.catalog, kind)
            bind_tree(binding, item.defexpr, (), declared)
            default, defaults = expression_text(binding, item.defexpr, (), declared), True
        elif defaults:
            message = "input parameters after one with a default value must also have defaults"
            raise SqlError("42P13", message)
        yield Argument(name, kind, default)


def _columns(binding: Binding, node: Any) -> Iterator[Argument]:
    """The columns of RETURNS TABLE."""
    names: set[str] = set()
    for item in node.parameters or ():
        if FunctionParameterMode(item.mode) == FunctionParameterMode.FUNC_PARAM_TABLE:
            if item.name in names:
                raise SqlError("42P13", f'parameter name "{item.name}" used more than once')
            names.add(item.name)
            yield Argument(item.name, _type(binding, item.argType, "returns"))


def _type(binding: Binding, node: Any, does: str) -> int:
    name, position = names_of(node.names)[-1], binding.position(node)
    if name in _POLYMORPHIC:
        raise unsupported(f"a polymorphic function ({name})", "Declare it once for each type.", position)
    if node.setof and does == "takes":
        raise SqlError("42P13", "functions cannot accept set arguments")
    if name in ("trigger", "event_trigger", "void", "record"):
        raise unsupported(f"a function that {does} {name}", "Return one value.", position)
    alone = copy.copy(node)
    alone.setof = False
    kind = type_of(binding, alone)
    if kind.row is not None and not node.setof:
        instead = "Return one value, or SETOF of the rows." if does == "returns" else "Give its fields one by one."
        raise unsupported(f"a function that {does} {'a row' if does == 'returns' else 'rows'}", instead, position)
    return kind.oid


def _result(binding: Binding, node: Any, columns: tuple[Argument, ...]) -> int:
    if node.returnType is None:
        raise SqlError("42P13", "function result type must be specified")
    if columns:
        return columns[0].type if len(columns) == 1 else RECORD_OID
    return _type(binding, node.returnType, "returns")


def require_no_member(function: Function, doing: str) -> None:
    """Raises 0A000 for a function that is as its extension has it."""
    if function.extension:
        raise unsupported(f"{doing} a function of extension {function.extension}", "Create one of another name.")


def _check_replaced(binding: Binding, node: Any, before: Function, after: Function) -> None:
    """Raises 42723, 42501, 42P13 and 0A000."""
    if not node.replace:
        message = f'function "{before.name}" already exists with same argument types'
        raise SqlError("42723", message)
    if binding.reader is not None and not owns(binding, before.oid, binding.reader):
        raise SqlError("42501", f"must be owner of function {before.name}")
    require_no_member(before, "replacing")
    hint = f"Use DROP FUNCTION {signature(binding.context.catalog, before)} first."
    if before.returned != after.returned:
        raise SqlError("42P13", "cannot change return type of existing function", hint=hint)
    for old, new in zip(before.arguments, after.arguments, strict=True):
        if old.name and old.name != new.name:
            raise SqlError("42P13", f'cannot change name of input parameter "{old.name}"', hint=hint)
        if old.default is not None and new.default is None:
            raise SqlError("42P13", "cannot remove parameter defaults from existing function", hint=hint)
    require_no_program(binding, before, "replacing")


def require_no_program(binding: Binding, function: Function, doing: str) -> None:
    """Raises 0A000 where a continuous view's program has a function's body."""
    for item in binding.context.catalog.objects.values():
        if isinstance(item, View) and item.continuous and function.oid in item.functions:
            instead = "Drop the view first, and create it again."
            raise unsupported(f"{doing} a function that continuous view {item.name} calls", instead)


def _check_body(binding: Binding, function: Function) -> Collection[int]:
    """The functions that a body calls, bound over any arguments. Raises 42P13, 0A000, and what binding it raises."""
    inner = new_binding(within(binding.context, parameter_types=(), names=None, types=None, calls=None), binding.raw)
    inner.reader = inner.caller = None
    inner.marks_rows = True
    catalog = inner.context.catalog
    if not function.returns_set:
        value_node(function.body, function.returns)
    given = [
        ColumnRef(Column(-1 - place, item.name or f"${place + 1}", type_by_oid(catalog, item.type)))
        for place, item in enumerate(function.arguments)
    ]
    inner.bodies.append(tuple(given))
    inner.inlining.append(function.oid)
    inner.views.append(0)
    if function.returns_set:
        rows_of(inner, function, given)
    else:
        body_of(inner, function, given)
    if inner.streams:
        instead = "Create a continuous view over the stream, and read that."
        raise unsupported(f'a function that reads the stream "{inner.streams[0][0]}"', instead)
    return inner.functions


# --- DROP ------------------------------------------------------------------------------------------------------------


def bind_drop_function(binding: Binding, node: Any) -> DropFunction:
    """DROP FUNCTION [IF EXISTS] names [(types)]. Raises 42883, 42725, 42501, 2BP01 and 0A000."""
    found: list[Function] = []
    notices: list[str] = []
    for item in node.objects:
        try:
            function = find_function(binding, item)
        except SqlError as error:
            if not node.missing_ok or error.sqlstate not in ("42883", "42704", "3F000"):
                raise
            notices.append(f"{_written(item)} does not exist, skipping")
            continue
        if binding.reader is not None and not owns(binding, function.oid, binding.reader):
            raise SqlError("42501", f"must be owner of function {function.name}")
        if function.extension:
            words = f"cannot drop function {signature(binding.context.catalog, function)}"
            message = f"{words} because extension {function.extension} requires it"
            raise SqlError("2BP01", message, hint=f"You can drop extension {function.extension} instead.")
        if function not in found:
            found.append(function)
    needed = list(dependents_of(binding, found))
    if needed and node.behavior == DropBehavior.DROP_CASCADE:
        raise unsupported(f"DROP FUNCTION ... CASCADE to {needed[0][0]}", "Drop that first.")
    if needed:
        what = f"function {signature(binding.context.catalog, found[0])}" if len(found) == 1 else "desired object(s)"
        lines = "\n".join(f"{words} depends on function {name}" for words, name in needed)
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", lines, hint)
    return DropFunction(tuple(found), tuple(notices))


def _written(item: Any) -> str:
    name = ".".join(names_of(item.objname))
    types = "" if item.args_unspecified else ",".join(".".join(names_of(kind.names)) for kind in item.objargs or ())
    return f"function {name}({types})"


def dependents_of(binding: Binding, functions: list[Function], by_name: bool = False) -> Iterator[tuple[str, str]]:
    """What needs one of some functions, described, with that: views, texts of tables and domains, and functions of
    RETURN. ``by_name``: which find it by that; views do not."""
    catalog, context = binding.context.catalog, within(binding.context, parameter_types=())
    for function in functions:
        name = signature(catalog, function)
        for item in catalog.objects.values():
            if isinstance(item, View) and function.oid in item.functions and not by_name:
                yield describe(binding, item), name
            if isinstance(item, Table | Stream):
                for words in texts_calling(item, function.oid, context):
                    yield words.format(describe(binding, item)), name
        for declared in catalog.types.values():
            if isinstance(declared, Domain) and texts_calling(declared, function.oid, context):
                yield f"type {declared}", name
        for other in every(catalog.functions):
            if other.returns and other not in functions and function.oid in _called_by(binding, other):
                yield f"function {signature(catalog, other)}", name


def _called_by(binding: Binding, function: Function) -> Collection[int]:
    """The functions that a body calls; none where it does not bind any more."""
    with suppress(SqlError):
        return _check_body(new_binding(binding.context, binding.raw), function)
    return ()
