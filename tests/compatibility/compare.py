"""Runs one statement on both servers and classifies the outcome: equal, refused, or different.

Owns: ``Peer``, a connection that returns names, types, rows as text and SQLSTATEs, and the classes of outcomes.
Numerics are compared as text, doubles to 12 digits and reals to 6; rows as a bag unless their order is determined.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from psycopg.pq import DiagnosticField, ExecStatus, PGconn, abc

_EXACT: Final = Context(prec=400, rounding=ROUND_HALF_UP)
_DIGITS: Final = {700: 6, 701: 12}
_NUMERIC: Final = 1700
#: The most decimals of numerics of undeclared scale: for quotients, and for others.
_KEPT: Final = (20, 18)
_FLOAT_ARRAYS: Final = {1021: 6, 1022: 12}
#: The most decimals of a quotient or an average.
_DECIMALS: Final = Decimal(1).scaleb(-15)


class Verdict(Enum):
    """The class of a case's outcome."""

    EQUAL = "equal"
    REFUSED = "refused"
    DIFFERENT = "different"


class Outcome(Struct, frozen=True):
    """The outcome of a statement: columns as (name, type oid, modifier) and rows as text, or an SQLSTATE."""

    state: str
    columns: tuple[tuple[str, int, int], ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    message: str = ""


class Peer:
    """A connection to the server of ``dsn``."""

    def __init__(self, dsn: str, setup: tuple[str, ...] = ()) -> None:
        self._dsn, self._setup = dsn, setup
        self._connection = self._connect()

    def _connect(self) -> abc.PGconn:
        found = PGconn.connect(self._dsn.encode())
        for statement in ("SET TimeZone = 'UTC'", "SET statement_timeout = '2min'", *self._setup):
            found.exec_(statement.encode())
        return found

    def run(self, statement: str) -> Outcome:
        """Executes a statement; a lost connection is an outcome, and is replaced."""
        result = self._connection.exec_(statement.encode())
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            columns = tuple(
                ((result.fname(at) or b"").decode(), result.ftype(at), result.fmod(at)) for at in range(result.nfields)
            )
            rows = tuple(
                tuple(_text(result.get_value(row, at), columns[at][1]) for at in range(result.nfields))
                for row in range(result.ntuples)
            )
            return Outcome("00000", columns, rows)
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        message = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode()
        if not state:
            self._connection = self._connect()
        return Outcome(state or "lost", message=message)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.finish()


def _text(value: bytes | None, oid: int) -> str | None:
    if value is None:
        return None
    shown = value.decode()
    if oid in _DIGITS:
        return f"{float(shown):.{_DIGITS[oid]}g}"
    if oid in _FLOAT_ARRAYS:
        return ",".join(_number(item) for item in shown.strip("{}").split(","))
    return shown


def _number(text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    return format(_EXACT.quantize(number, _DECIMALS).normalize(_EXACT) + 0, "f")


def judge(found: Outcome, wanted: Outcome, ordered: bool) -> Verdict:
    """The class of Millstream's outcome, compared with PostgreSQL's."""
    if found.state == "0A000" and wanted.state != "0A000":
        return Verdict.REFUSED
    if found.state != wanted.state or found.columns != wanted.columns:
        return Verdict.DIFFERENT
    same = found.rows == wanted.rows if ordered else _bag(found) == _bag(wanted)
    return Verdict.EQUAL if same else Verdict.DIFFERENT


def alike(found: Outcome, wanted: Outcome) -> bool:
    """Whether outcomes differ only in the decimals of numerics, or in the order of rows."""
    same = (found.state, found.columns) == (wanted.state, wanted.columns)
    return same and _bag(_by_value(found)) == _bag(_by_value(wanted))


def is_cut(found: Outcome, wanted: Outcome, ordered: bool) -> bool:
    """Whether outcomes that are ``alike`` differ only in numerics for which PostgreSQL shows more decimals than
    Millstream keeps."""
    shown, judged = (_in_order(item, ordered) for item in (found, wanted))
    cells = (pair for rows in zip(shown, judged, strict=True) for pair in zip(*rows, strict=True))
    return all(_shows_fewer(ours or "", theirs or "") for ours, theirs in cells if ours != theirs)


def _in_order(outcome: Outcome, ordered: bool) -> list[tuple[str | None, ...]]:
    """The rows in an order that depends on their values only, unless the query orders them."""
    if ordered:
        return list(outcome.rows)
    values = _by_value(outcome).rows
    return [row for _, row in sorted(zip(values, outcome.rows, strict=True), key=repr)]


def _shows_fewer(ours: str, theirs: str) -> bool:
    decimals, wanted = (len(text.partition(".")[2]) for text in (ours, theirs))
    return decimals in _KEPT and decimals < wanted and _number(ours) == _number(theirs)


def _by_value(outcome: Outcome) -> Outcome:
    """The rows with numerics rounded to 15 decimals."""
    kinds = [kind for _, kind, _ in outcome.columns]
    rows = (
        tuple(
            _number(text) if text is not None and kind == _NUMERIC else text
            for kind, text in zip(kinds, row, strict=True)
        )
        for row in outcome.rows
    )
    return replace(outcome, rows=tuple(rows))


def _bag(outcome: Outcome) -> list[tuple[str, ...]]:
    return sorted(tuple("\0" if item is None else item for item in row) for row in outcome.rows)
