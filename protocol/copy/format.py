"""COPY's options and its target: the columns, and the relation that errors name.

``CopyFormat`` mirrors planner.statements.CopyOptions, which this layer must not import; the server maps one to the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import SqlType

#: The most characters of a line or a value that an error's context shows, as in PostgreSQL.
_SHOWN = 100


class CopyFormat(Struct, frozen=True):
    """COPY's options, with the format's defaults filled in. Delimiter, quote and escape are one ASCII character each.

    ``codec`` is Python's codec for ``encoding``; in it, ASCII bytes stand for ASCII characters only. The ``force_``
    options hold columns' places, from 0.
    """

    format: Literal["text", "csv", "binary"] = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    match_header: bool = False
    encoding: str = "UTF8"
    codec: str = "utf-8"
    force_quote: frozenset[int] = frozenset()
    force_not_null: frozenset[int] = frozenset()
    force_null: frozenset[int] = frozenset()

    @property
    def is_recoded(self) -> bool:
        """Whether the data are in an encoding other than UTF8."""
        return self.codec != "utf-8"


class CopyTarget(Struct, frozen=True):
    """The columns that COPY FROM fills.

    ``scaled`` are the places of numeric columns whose display scales are returned too, after the columns themselves.
    ``only`` are the places of the columns to return, None for all; fields of other columns are split off and not
    checked further.
    """

    types: tuple[SqlType, ...]
    names: tuple[str, ...]
    relation: str
    timezone: str = "UTC"
    scaled: tuple[int, ...] = ()
    only: tuple[int, ...] | None = None

    @property
    def places(self) -> Sequence[int]:
        """The places of the columns to return."""
        return range(len(self.types)) if self.only is None else self.only

    @property
    def kinds(self) -> tuple[SqlType, ...]:
        """The types of the columns to return."""
        return self.types if self.only is None else tuple(self.types[place] for place in self.only)

    def line_error(self, sqlstate: str, message: str, line: int, content: bytes | None = None) -> SqlError:
        """An error about a whole line, with PostgreSQL's context line."""
        where = f"COPY {self.relation}, line {line}"
        if content is not None:
            where += f': "{_limited(content.decode(errors="replace"))}"'
        return SqlError(sqlstate, message, where=where)

    def value_error(self, error: SqlError, line: int, column: int, content: str | None) -> SqlError:
        """An error about one value, with PostgreSQL's context line."""
        shown = "" if content is None else f': "{_limited(content)}"'
        where = f"COPY {self.relation}, line {line}, column {self.names[column]}{shown}"
        return SqlError(error.sqlstate, error.message, error.detail, error.hint, None, where)


def _limited(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
