"""DO blocks: what of PL/pgSQL migrations are made of, as steps that the server runs.

Owns: the parser's tree of a block (libpg_query's, as JSON) -> ``planner.procedural``, and the names of conditions.
Variables, loops and results are refused by name (0A000). https://www.postgresql.org/docs/15/plpgsql-structure.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pglast import parse_plpgsql, parser

from catalog.errors import SqlError, unsupported
from planner.bind.context import Binding
from planner.procedural import DoBlock, Handler, If, Raise, Run, RunText, Step, Steps

_INSTEAD: Final = "Send its statements one by one from the client."
#: Names of conditions that migrations handle (plerrcodes.h), others as SQLSTATE 'state'.
_CONDITIONS: Final = {
    "others": "",
    "division_by_zero": "22012",
    "invalid_text_representation": "22P02",
    "data_exception": "22",
    "integrity_constraint_violation": "23",
    "not_null_violation": "23502",
    "foreign_key_violation": "23503",
    "unique_violation": "23505",
    "check_violation": "23514",
    "dependent_objects_still_exist": "2BP01",
    "invalid_schema_name": "3F000",
    "syntax_error_or_access_rule_violation": "42",
    "syntax_error": "42601",
    "insufficient_privilege": "42501",
    "wrong_object_type": "42809",
    "undefined_column": "42703",
    "undefined_function": "42883",
    "undefined_table": "42P01",
    "undefined_object": "42704",
    "duplicate_column": "42701",
    "duplicate_function": "42723",
    "duplicate_schema": "42P06",
    "duplicate_table": "42P07",
    "duplicate_object": "42710",
    "invalid_table_definition": "42P16",
    "invalid_object_definition": "42P17",
    "object_not_in_prerequisite_state": "55000",
    "object_in_use": "55006",
    "lock_not_available": "55P03",
    "feature_not_supported": "0A000",
    "raise_exception": "P0001",
}
#: elog.h
_LEVELS: Final = {14: "debug", 15: "debug", 17: "notice", 18: "notice", 19: "warning", 21: "error"}
#: Variables that each block has.
_GIVEN: Final = ("found", "sqlstate", "sqlerrm")


def bind_do(binding: Binding, node: Any) -> DoBlock:
    """DO [LANGUAGE plpgsql] code. Raises 42601, and 0A000 for what is more than statements and conditions."""
    options = {item.defname: item.arg.sval for item in node.args}
    language = options.get("language", "plpgsql").lower()
    if language != "plpgsql":
        if language in ("sql", "c", "internal"):
            raise SqlError("0A000", f'language "{language}" does not support inline code execution')
        raise SqlError("42704", f'language "{language}" does not exist')
    if "as" not in options:
        raise SqlError("42601", "no inline code specified")
    quoted = options["as"].replace("'", "''")
    try:
        (tree,) = parse_plpgsql(f"DO '{quoted}'")
    except parser.ParseError as error:
        raise SqlError("42601", str(error.args[0])) from None
    function = tree["PLpgSQL_function"]
    for item in function["datums"]:
        ((kind, datum),) = item.items()
        if kind != "PLpgSQL_var" or datum["refname"] not in _GIVEN:
            raise unsupported("a variable in DO", _INSTEAD)
    body = function["action"]["PLpgSQL_stmt_block"]
    return DoBlock(_block(body))


def _steps(items: Sequence[dict[str, Any]] | None) -> tuple[Step, ...]:
    found = []
    for item in items or ():
        ((kind, node),) = item.items()
        if kind == "PLpgSQL_stmt_return" and "lineno" not in node:  # what the parser ends the whole with
            continue
        if kind not in _STEPS:
            word = kind.removeprefix("PLpgSQL_stmt_").upper()
            raise unsupported(f"{word} in DO", _INSTEAD)
        found.append(_STEPS[kind](node))
    return tuple(found)


def _text(node: dict[str, Any]) -> str:
    return str(node["PLpgSQL_expr"]["query"])


def _block(node: dict[str, Any]) -> Steps:
    clause = node.get("exceptions", {}).get("PLpgSQL_exception_block", {})
    handlers = (item["PLpgSQL_exception"] for item in clause.get("exc_list", ()))
    return Steps(_steps(node.get("body")), tuple(_handler(item) for item in handlers))


def _handler(node: dict[str, Any]) -> Handler:
    names = (item["PLpgSQL_condition"]["condname"] for item in node["conditions"])
    return Handler(tuple(_state(name) for name in names), _steps(node.get("action")))


def _state(name: str) -> str:
    if name in _CONDITIONS:
        return _CONDITIONS[name]
    if len(name) == 5 and name.isalnum() and name == name.upper():
        return name
    raise unsupported(f"the condition {name} in DO", "Write SQLSTATE and its five characters.")


def _run(node: dict[str, Any]) -> Run:
    if node.get("into"):
        raise unsupported("INTO in DO", _INSTEAD)
    return Run(_text(node["sqlstmt"]))


def _run_text(node: dict[str, Any]) -> RunText:
    if node.get("into") or node.get("params"):
        raise unsupported("EXECUTE with INTO or USING in DO", _INSTEAD)
    return RunText(f"SELECT {_text(node['query'])}")


def _if(node: dict[str, Any]) -> If:
    cases = [(node["cond"], node.get("then_body"))]
    for item in node.get("elsif_list", ()):
        case = item["PLpgSQL_if_elsif"]
        cases.append((case["cond"], case.get("stmts")))
    found = tuple((f"SELECT ({_text(condition)})::boolean", _steps(steps)) for condition, steps in cases)
    return If(found, _steps(node.get("else_body")))


def _raise(node: dict[str, Any]) -> Raise:
    level = _LEVELS.get(node.get("elog_level", 21))
    if level is None or node.get("options") or "message" not in node:
        raise unsupported("this form of RAISE in DO", "Give it a message, and no more.")
    arguments = tuple(f"SELECT ({_text(item)})::text" for item in node.get("params", ()))
    if node["message"].replace("%%", "").count("%") != len(arguments):
        few = node["message"].replace("%%", "").count("%") > len(arguments)
        raise SqlError("42601", f"too {'few' if few else 'many'} parameters specified for RAISE")
    return Raise(level, node["message"], arguments)  # type: ignore[arg-type]  # a value of _LEVELS


_STEPS: Final[dict[str, Callable[[dict[str, Any]], Step]]] = {
    "PLpgSQL_stmt_block": _block,
    "PLpgSQL_stmt_execsql": _run,
    "PLpgSQL_stmt_perform": lambda node: Run(_text(node["expr"]), discards=True),
    "PLpgSQL_stmt_dynexecute": _run_text,
    "PLpgSQL_stmt_if": _if,
    "PLpgSQL_stmt_raise": _raise,
}
