"""DO blocks: the PL/pgSQL that migrations use, as steps that the server runs.

Owns: the conversion of the parser's tree of a block (libpg_query's, as JSON) into ``planner.statements.do_blocks``.
Variables, loops and results raise 0A000. https://www.postgresql.org/docs/15/plpgsql-structure.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pglast import parse_plpgsql, parser

from catalog.values.errors import SqlError, unsupported
from planner.bind.state.environment import Binding
from planner.statements.do_blocks import DoBlock, Handler, If, Raise, Run, RunText, Step, Steps
from planner.statements.error_conditions import state_of, states_of

_INSTEAD: Final = "Send its statements one by one from the client."
#: elog.h
_LEVELS: Final = {14: "DEBUG", 15: "LOG", 17: "INFO", 18: "NOTICE", 19: "WARNING", 21: "ERROR"}
#: plpgsql.h, PLpgSQL_raise_option_type
_OPTIONS: Final = ("ERRCODE", "MESSAGE", "DETAIL", "HINT", "COLUMN", "CONSTRAINT", "DATATYPE", "TABLE", "SCHEMA")
#: How the parser's error about a name of no condition begins.
_NO_CONDITION: Final = "unrecognized exception condition"
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
        message = str(error.args[0])
        raise SqlError("42704" if message.startswith(_NO_CONDITION) else "42601", message) from None
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
    return Handler(tuple(state for name in names for state in states_of(name)), _steps(node.get("action")))


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
    arguments = tuple(f"SELECT ({_text(item)})::text" for item in node.get("params", ()))
    message = node.get("message")
    places = (message or "").replace("%%", "").count("%")
    if places != len(arguments):
        raise SqlError("42601", f"too {'few' if places > len(arguments) else 'many'} parameters specified for RAISE")
    condition = node.get("condname")
    if condition is not None:
        state_of(condition)
    given = (item["PLpgSQL_raise_option"] for item in node.get("options", ()))
    options = tuple((_OPTIONS[item["opt_type"]], f"SELECT ({_text(item['expr'])})::text") for item in given)
    level = _LEVELS[node.get("elog_level", 21)]
    return Raise(level, message, arguments, condition, options, node["lineno"])  # type: ignore[arg-type]  # of _LEVELS


_STEPS: Final[dict[str, Callable[[dict[str, Any]], Step]]] = {
    "PLpgSQL_stmt_block": _block,
    "PLpgSQL_stmt_execsql": _run,
    "PLpgSQL_stmt_perform": lambda node: Run(_text(node["expr"]), discards=True),
    "PLpgSQL_stmt_dynexecute": _run_text,
    "PLpgSQL_stmt_if": _if,
    "PLpgSQL_stmt_raise": _raise,
}
