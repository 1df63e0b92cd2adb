"""Spark's errors as PostgreSQL's.

Owns: the map from Spark's error conditions to SQLSTATE and wording, as plain data on both sides of the pipe. Only known
errors of the data become SQL errors. Everything else is a failure of the engine, after which the caller tries the other
engine. Integers overflow in a CAST that names their type (``printing.dialect``), bigints in ARITHMETIC_OVERFLOW.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from catalog.values.errors import SqlError
from executor.engine import EngineRefused, EngineUnavailable

Failure = dict[str, str]

_INTEGERS: Final = {'"INT"': "integer", '"SMALLINT"': "smallint", '"BIGINT"': "bigint"}
#: raise_error('22011:negative substring length not allowed'), printed by the dialect.
_RAISED: Final = re.compile(r"(?s)([0-9A-Z]{5}):(.*)")
#: What gRPC prints of a call that failed, between lines of its own.
_DETAILS: Final = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
#: What the text of an error has that says that there is no plan: Spark's words, or those of a planner that went wrong.
_REFUSED: Final = ("[UNSUPPORTED_", "[INTERNAL_ERROR", "[RECURSION_", "NoSuchElementException: key not found")
#: An error of the kernel's, in what a Python worker said.
_MARKED: Final = re.compile(r"<millstream (\[.*\])>$", re.MULTILINE)
_FIXED: Final[dict[str, tuple[str, str]]] = {
    "DIVIDE_BY_ZERO": ("22012", "division by zero"),
    "REMAINDER_BY_ZERO": ("22012", "division by zero"),
    "ARITHMETIC_OVERFLOW": ("22003", "bigint out of range"),
    "BINARY_ARITHMETIC_OVERFLOW": ("22003", "smallint out of range"),
    "NUMERIC_VALUE_OUT_OF_RANGE": ("22003", "numeric field overflow"),
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": ("22003", "numeric field overflow"),
    "DATETIME_OVERFLOW": ("22008", "timestamp out of range"),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": ("21000", "more than one row returned by a subquery used as an expression"),
    "CAST_INVALID_INPUT": ("22P02", "invalid input syntax"),
    "MALFORMED_RECORD_IN_PARSING": ("22P04", "a source file has a record that does not fit the stream's columns"),
    "MALFORMED_CSV_RECORD": ("22P04", "a source file has a record that does not fit the stream's columns"),
    "PATH_NOT_FOUND": ("58P01", "a file is missing"),
}


def marked(error: SqlError) -> str:
    """An error in a line, for an exception of which Spark passes on the text."""
    return f"<millstream {json.dumps([error.sqlstate, error.message, error.detail, error.hint])}>"


def describe(error: BaseException) -> Failure:
    """The failure of a job as the driver reports it."""
    told = _MARKED.search(str(error))
    if told is not None:
        error = SqlError(*json.loads(told.group(1)))
    if isinstance(error, SqlError):
        more = {"detail": error.detail, "hint": error.hint}
        told_more = {name: text for name, text in more.items() if text is not None}
        return {"kind": "sql", "sqlstate": error.sqlstate, "message": error.message, **told_more}
    if isinstance(error, FileNotFoundError):
        return {"kind": "sql", "sqlstate": "58P01", "message": f'file "{error.filename or ""}" is missing'}
    condition, parameters = _condition(error)
    found = _sql(condition, parameters)
    if found is not None:
        return {"kind": "sql", "sqlstate": found[0], "message": found[1]}
    kind = "cancelled" if _is_cancelled(condition, str(error).lower()) else "engine"
    if kind == "engine" and _is_refused(error):
        kind = "refused"
    return {"kind": kind, "message": f"{type(error).__name__}: {_first_line(error)}"}


def _is_refused(error: BaseException) -> bool:
    """Whether Spark's analyser or planner, and no task, raised it."""
    if type(error).__name__ in ("AnalysisException", "ParseException"):
        return True
    return any(sign in str(error) for sign in _REFUSED)


def _is_cancelled(condition: str, text: str) -> bool:
    """Whether a job group's end, or a tag's behind Connect, is what ended the job."""
    return condition == "OPERATION_CANCELED" or ("cancelled" in text and "group" in text)


def _first_line(error: BaseException) -> str:
    details = _DETAILS.search(str(error))
    text = details.group(1) if details is not None else str(error).strip()
    return text.splitlines()[0][:500] if text else ""


def to_exception(failure: Failure) -> Exception:
    """What the engine raises for a failure."""
    if failure["kind"] == "sql":
        return SqlError(failure["sqlstate"], failure["message"], failure.get("detail"), failure.get("hint"))
    if failure["kind"] == "refused":
        return EngineRefused(failure["message"])
    if failure["kind"] == "cancelled":
        return SqlError("57014", "canceling statement due to user request")
    return EngineUnavailable(failure["message"])


def _condition(error: BaseException) -> tuple[str, dict[str, str]]:
    """Spark's error condition and its parameters; found in the text where a wrapper hides it."""
    own = getattr(error, "getCondition", None)
    condition = own() if own is not None else None
    if condition and not condition.startswith("FAILED_READ_FILE"):
        parameters: Any = getattr(error, "getMessageParameters", dict)()
        return condition, dict(parameters or {})
    text = str(error)
    for match in re.finditer(r"\[([A-Z_]+(?:\.[A-Z_]+)?)\] ?([^\n]*)", text):
        if match.group(1).partition(".")[0] in _FIXED or match.group(1).startswith(("CAST_OVERFLOW", "USER_RAISED")):
            return match.group(1), _parameters(match.group(2))
    if (condition or "").endswith("FILE_NOT_EXIST") or "FileNotFoundException" in text:
        return "PATH_NOT_FOUND", {}
    return condition or "", {}


def _parameters(text: str) -> dict[str, str]:
    target = re.search(r'cannot be cast to ("[A-Z]+")', text)
    raised = re.sub(r" SQLSTATE: \w+$", "", text)
    return {"errorMessage": raised, **({"targetType": target.group(1)} if target is not None else {})}


def _sql(condition: str, parameters: dict[str, str]) -> tuple[str, str] | None:
    """SQLSTATE and message; None for what is no error of the data."""
    name = condition.partition(".")[0]
    if name == "USER_RAISED_EXCEPTION":
        match = _RAISED.fullmatch(parameters.get("errorMessage", ""))
        return (match.group(1), match.group(2)) if match is not None else None
    if name == "CAST_OVERFLOW":
        integer = _INTEGERS.get(parameters.get("targetType", ""))
        return ("22003", f"{integer} out of range") if integer is not None else ("22003", "numeric field overflow")
    return _FIXED.get(name)
