"""DuckDB's exceptions as PostgreSQL's errors.

Owns: ``translate`` and ``overflowed``. They know the wording of DuckDB 2.0's messages, and that a macro's message
starts with ``!SQLSTATE!`` and may end with a detail and a hint, or with a domain's schema, name and constraint. An
unknown message is XX000 with DuckDB's own text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from catalog.values.errors import SqlError, Subject, division_by_zero, invalid_text, out_of_range, unsupported

_NAMES: Final = {
    "INT8": "smallint",
    "INT16": "smallint",
    "INT32": "integer",
    "INT64": "bigint",
    "INT128": "numeric",
    "BOOL": "boolean",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "UUID": "uuid",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "INTERVAL": "interval",
}


def _name(engine_type: str) -> str:
    return "numeric" if engine_type.startswith("DECIMAL") else _NAMES.get(engine_type, engine_type.lower())


def _unconvertible(match: re.Match[str]) -> SqlError:
    """The error for a text that is not a number of the type, or a number that is too large."""
    value, target = match["value"], match["type"]
    if target != "UUID" and re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", value, re.IGNORECASE):
        if target.startswith("DECIMAL"):
            return _numeric_overflow(target)
        return out_of_range(f'value "{value}" is out of range for type {_name(target)}')
    if target.startswith("DECIMAL") and value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return unsupported(f"numeric {value}", "Use double precision for values that are not finite.")
    return invalid_text(_name(target), value)


def _numeric_overflow(target: str) -> SqlError:
    sizes = re.search(r"\((\d+),\s*(\d+)\)", target)
    error = SqlError("22003", "numeric field overflow")
    if sizes is not None:
        precision, scale = int(sizes[1]), int(sizes[2])
        error.detail = (
            f"A field with precision {precision}, scale {scale} must round to an absolute value less than "
            + (f"10^{precision - scale}." if precision > scale else "1.")
        )
    return error


def _narrowing(match: re.Match[str]) -> SqlError:
    target = match["type"]
    if target.startswith("DECIMAL"):
        return _numeric_overflow(target)
    name = _name(target)
    return SqlError("22003", f"{name} out of range")


_LEAST: Final = {-(1 << bits - 1): f"INT{bits}" for bits in (8, 16, 32, 64)}


def _least(match: re.Match[str]) -> SqlError:
    """The error for negating the least value of a type."""
    return out_of_range(f"{_name(_LEAST.get(int(match['value']), 'INT128'))} out of range")


def _no_day(match: re.Match[str]) -> SqlError:
    """The error for a date with an invalid year, month or day."""
    year, month, day = (int(match[name]) for name in ("year", "month", "day"))
    return SqlError("22008", f"date field value out of range: {year:04}-{month:02}-{day:02}")


def _raised(match: re.Match[str]) -> SqlError:
    about = None
    if match["domain"] is not None:
        about = Subject(match["schema"], constraint=match["constraint"] or None, datatype=match["domain"])
    return SqlError(match["state"], match["message"], match["detail"] or None, match["hint"] or None, about=about)


def _cast_raised(match: re.Match[str]) -> SqlError:
    return SqlError(match["state"], match["message"])


def _datetime(match: re.Match[str]) -> SqlError:
    kind = match["kind"]
    name = {"timestamp": "timestamp", "time": "time"}.get(kind, kind)
    if match["what"].startswith("value out of range") and re.match(r"\s*\d", match["value"]):
        return SqlError("22008", f'date/time field value out of range: "{match["value"]}"')
    return SqlError("22007", f'invalid input syntax for type {name}: "{match["value"]}"')


def _in_use(match: re.Match[str]) -> SqlError:
    message = f'another server (process {match["process"]}) runs on this data folder: it has "{match["file"]}" open'
    return SqlError("55006", message)


def _fixed(state: str, message: str) -> Callable[[re.Match[str]], SqlError]:
    return lambda match: SqlError(state, message)


def _damaged(match: re.Match[str]) -> SqlError:
    """The error for damage in the tables' file or its log, which DuckDB finds by checksums while it reads."""
    text = match.string
    name = "tables.duckdb.wal" if "Corrupt WAL file" in text else "tables.duckdb"
    if "checkpoint iteration" in text:
        name, text = "tables.duckdb.wal", "it does not match tables.duckdb: one of the two files is older"
    found = re.search(
        r"at byte position \d+|at location \d+|from location \d+|not a valid|one of the two files is older", text
    )
    where = "" if found is None else f" ({found[0]})"
    hint = "Restore the file, or restore the whole data folder from a backup."
    return SqlError("XX001", f'"{name}" is damaged{where}', hint=hint)


_PATTERNS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], SqlError]], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), make)
    for pattern, make in (
        (r"\AINTERRUPT Error", _fixed("57014", "canceling statement due to user request")),
        # An optimiser does not treat a failing cast as error(), and may move it.
        (r"string '!(?P<state>[0-9A-Z]{5})!(?P<message>[^']*)'", _cast_raised),
        (
            r"!(?P<state>[0-9A-Z]{5})!(?P<message>.*?)(\x1e(?P<detail>[^\x1e]*)\x1e(?P<hint>[^\x1e]*?))?"
            r"(\x1f(?P<schema>[^\x1f]*)\x1f(?P<domain>[^\x1f]*)\x1f(?P<constraint>[^\x1f]*))?\Z",
            _raised,
        ),
        (
            r"Non-constant limit not supported in correlated subquery",
            lambda match: unsupported(
                "a computed LIMIT in a correlated subquery", "Write the number of rows as a constant."
            ),
        ),
        (r"Cannot subtract infinite timestamps", _fixed("22008", "cannot subtract infinite timestamps")),
        (r"infinite bounds not supported", lambda match: unsupported("a series without an end")),
        (r"interval cannot be 0", _fixed("22023", "step size cannot equal zero")),
        (r"Division by zero", lambda match: division_by_zero()),
        (r"Could not convert string ['\"](?P<value>.*)['\"] to (?P<type>[A-Z0-9]+(\(\d+, ?\d+\))?)", _unconvertible),
        (r"Could not cast value (?P<value>.*) to (?P<type>DECIMAL\(\d+, ?\d+\))", _narrowing),
        (r"Failed to cast decimal value \S+ to type (?P<type>[A-Z0-9]+)", _narrowing),
        (r"Casting value .* to type (?P<type>DECIMAL\(\d+, ?\d+\)) failed: value is out of range", _narrowing),
        (r"can't be cast because the value is out of range for the destination type (?P<type>[A-Z0-9]+)", _narrowing),
        (
            r"(?P<kind>date|timestamp|time) field (?P<what>format|value out of range)[^\"]*\"(?P<value>[^\"]*)\"",
            _datetime,
        ),
        (r"invalid (?P<kind>date|timestamp|time) field (?P<what>format)[^\"]*\"(?P<value>[^\"]*)\"", _datetime),
        (
            r"extract specifier \"(?P<value>.*?)\" not recognized",
            lambda match: invalid_text("interval", match["value"]),
        ),
        (r"Overflow in (\w+) of (?P<type>INT\d+)", lambda match: out_of_range(f"{_name(match['type'])} out of range")),
        (r"Overflow (in division of|on abs\() ?(?P<value>-\d+)", _least),
        (
            r"Cannot (?P<what>AND|OR|XOR) bit strings of different sizes",
            lambda match: SqlError("22026", f"cannot {match['what']} bit strings of different sizes"),
        ),
        (r"lcm value is out of range", _fixed("22003", "bigint out of range")),
        (r"Overflow in (\w+ of INTERVAL|INTERVAL \w+)", _fixed("22008", "interval out of range")),
        (
            r"Overflow in ((SUM|\w+) of (HUGEINT|DECIMAL)|HUGEINT \w+)",
            _fixed("22003", "value out of range: more than 38 digits"),
        ),
        (r"[Oo]verflow in sum|SUM is out of range", _fixed("22003", "bigint out of range")),
        (r"cannot take square root of a negative", _fixed("2201F", "cannot take square root of a negative number")),
        (r"cannot take logarithm of zero", _fixed("2201E", "cannot take logarithm of zero")),
        (r"cannot take logarithm of a negative", _fixed("2201E", "cannot take logarithm of a negative number")),
        (r"zero raised to a negative power", _fixed("2201F", "zero raised to a negative power is undefined")),
        (
            r"More than one row returned by a subquery",
            _fixed("21000", "more than one row returned by a subquery used as an expression"),
        ),
        (
            r"[Ll]ike pattern must not end with escape",
            _fixed("22025", "LIKE pattern must not end with escape character"),
        ),
        (
            r"invalid repetition size|pattern too large",  # RE2's message
            _fixed("2201B", "invalid regular expression: regular expression is too complex"),
        ),
        (r"expression depth limit|stack overflow", _fixed("54001", "stack depth limit exceeded")),
        (r"LIMIT.*(negative|less than)|limit .*negative", _fixed("2201W", "LIMIT must not be negative")),
        (r"OFFSET.*(negative|less than)|offset .*negative", _fixed("2201X", "OFFSET must not be negative")),
        (
            r"Could not serialize|write-write conflict|[Cc]onflict on ",
            _fixed("40001", "could not serialize access due to concurrent update"),
        ),
        (r"Date out of range: (?P<year>-?\d+)-(?P<month>-?\d+)-(?P<day>-?\d+)", _no_day),
        (r"[Dd]ate out of range", _fixed("22008", "date out of range")),
        (
            r"timestamp out of range|Timestamp.*out of range|not in timestamp range",
            _fixed("22008", "timestamp out of range"),
        ),
        (
            r"(Out of Memory|could not allocate|failed to allocate|MemoryError|bad_alloc)",
            _fixed("53200", "out of memory"),
        ),
        (r"[Mm]alloc of size|[Rr]ealloc of size", _fixed("53200", "out of memory")),  # Arrow's message
        (r"Too many open files", _fixed("53000", "too many open files")),
        (r'Could not set lock on file "(?P<file>[^"]*)".*\(PID (?P<process>\d+)\)', _in_use),
        (r"No space left on device", _fixed("53100", "could not write: No space left on device")),
        (
            r"\A(?:\w+ Error: )?(?:Corrupt database file|(?:Failure while replaying )?(?:Corrupt )?WAL file"
            r"|The file \"[^\"]*tables\.duckdb\" exists, but it is not a valid|This WAL was created for"
            r"|Could not read enough bytes from file \"[^\"]*tables\.duckdb)",
            _damaged,
        ),
        (r"Out of Range Error: (?P<message>[^\n]*)", lambda match: out_of_range(match["message"])),
    )
)


def translate(error: Exception) -> SqlError:
    """PostgreSQL's error for one of DuckDB's."""
    message = str(error)
    for pattern, make in _PATTERNS:
        match = pattern.search(message)
        if match is not None:
            return make(match)
    return SqlError("XX000", message.split("\n\n", maxsplit=1)[0])


def overflowed(error: Exception) -> bool:
    """Whether decimals left their narrow form, so that the wide one may still succeed."""
    message = str(error)
    return "of DECIMAL(" in message or ("DECIMAL" in message and "Overflow" in message)
