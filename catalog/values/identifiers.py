"""Names of relations as texts that regclass accepts.

Owns: folding, quotes and dots (https://www.postgresql.org/docs/15/datatype-oid.html). Knows no catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from catalog.postgres import rows
from catalog.values.errors import SqlError

#: Databases to which tools connect by default (createuser, psql --list, pg_dumpall): other names of the only database.
_MAINTENANCE: Final = ("postgres", "template1")

_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*(\.|$)')
_ELEMENT: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s",]+))\s*(,|$)')
_PLAIN: Final = re.compile("[a-z_][a-z0-9_]*")
#: The length of PostgreSQL's type name, in bytes.
LONGEST_NAME: Final = 63


def split_name(text: str) -> tuple[str | None, str]:
    """(schema or None, name) of a possibly qualified name. Raises 42602."""
    parts: list[str] = []
    position, more = 0, True
    while more:
        match = _PART.match(text, position)
        if match is None:
            raise SqlError("42602", "invalid name syntax")
        quoted, plain, end = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain.lower())
        position, more = match.end(), end == "."
    if len(parts) > 3:
        raise SqlError("42601", f"improper relation name (too many dotted names): {text}")
    return (parts[-2] if len(parts) > 1 else None), parts[-1]


def split_list(text: str) -> tuple[str, ...]:
    """The names in a list such as search_path. Raises ValueError if the text is not a list."""
    names: list[str] = []
    position, more = 0, bool(text.strip())
    while more:
        match = _ELEMENT.match(text, position)
        if match is None:
            raise ValueError(text)
        quoted, plain, end = match.groups()
        names.append(quoted.replace('""', '"') if quoted is not None else plain.lower())
        position, more = match.end(), end == ","
    return tuple(names)


def join_names(names: Iterable[str]) -> str:
    """Names as a list that ``split_list`` reads."""
    return ", ".join(map(quote_name, names))


@cache
def quoted_words() -> frozenset[str]:
    """Keywords that must be quoted as names: all except the unreserved ones."""
    return frozenset(str(row["word"]) for row in rows("keywords") if row["catcode"] != "U")


def quote_name(name: str) -> str:
    """A name as SQL text, quoted if necessary (quote_identifier)."""
    is_plain = _PLAIN.fullmatch(name) and name not in quoted_words()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def made_name(table: str, column: str, label: str) -> str:
    """table_column_label, or table_label, truncated to 63 bytes by shortening the longer of the first two
    (makeObjectName)."""
    first, second, room = table.encode(), column.encode(), LONGEST_NAME - len(label) - (2 if column else 1)
    while len(first) + len(second) > room:
        first, second = (first[:-1], second) if len(first) > len(second) else (first, second[:-1])
    parts = (part.decode(errors="ignore") for part in (first, second))
    return "_".join((*filter(None, parts), label))


def is_the_database(database: str, name: str) -> bool:
    """Whether a client's database name means the only database."""
    return name in (database, *_MAINTENANCE)
