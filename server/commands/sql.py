"""``millstream sql``: SQL statements of -c, of standard input, or typed.

Owns: the reading of statements and the print of results. Typed ones are psql's matter where psql is installed; for all
else a text is sent whole, as ``psql -c`` does, so that its statements are one transaction unless it says otherwise.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from server.commands.client import Unreachable, connect, identity
from server.commands.status import NOT_RUNNING
from server.operations.config import Config, choose, parser


def run(words: Sequence[str]) -> int:
    """Runs the statements; 0, 1 after an error of SQL, 3 where no server answers. Raises ConfigError."""
    options = parser("millstream sql", "Run SQL statements from -c, standard input or a prompt.")
    options.add_argument("-c", dest="texts", metavar="SQL", action="append", help="statements to run; may be repeated")
    options.add_argument("--csv", dest="csv", action="store_true", help="print results as CSV")
    flags = options.parse_args(words)
    config = choose(flags, os.environ).config
    typed = flags.texts is None and sys.stdin.isatty()
    if typed and shutil.which("psql"):
        _become_psql(config)
    try:
        connection = connect(config)
    except Unreachable as error:
        print(f"no answer at {config.listen}: {error}", file=sys.stderr)
        return NOT_RUNNING
    texts = flags.texts or (_typed() if typed else [sys.stdin.read()])
    connection.add_notice_handler(
        lambda notice: print(f"{notice.severity}:  {notice.message_primary}", file=sys.stderr)
    )
    failed = False
    with connection:
        for text in texts:
            failed |= not _run(connection, text, flags.csv)
            if failed and not typed:
                break
    return int(failed)


def _become_psql(config: Config) -> None:
    user, database = identity()
    os.execvp("psql", ["psql", "-h", config.listen.host, "-p", str(config.listen.port), "-U", user, "-d", database])


def _typed() -> Iterator[str]:
    """Statements from a terminal: each ends with the line that ends in a semicolon."""
    lines: list[str] = []
    while True:
        try:
            lines.append(input("millstream-> " if lines else "millstream=> "))
        except EOFError:
            print()
            return
        if lines[-1].rstrip().endswith(";"):
            yield "\n".join(lines)
            lines.clear()


def _run(connection: psycopg.Connection[Any], text: str, as_csv: bool) -> bool:
    cursor = connection.cursor()
    try:
        cursor.execute(text.encode())  # bytes: no placeholder is looked for
    except psycopg.Error as error:
        print(f"{error.diag.severity or 'ERROR'}:  {error.sqlstate or ''} {error}".rstrip(), file=sys.stderr)
        return False
    more: bool | None = True
    while more:
        _print(cursor, as_csv)
        more = cursor.nextset()
    return True


def _print(cursor: psycopg.Cursor[Any], as_csv: bool) -> None:
    if cursor.description is None:
        print(cursor.statusmessage or "", file=sys.stderr if as_csv else sys.stdout)
        return
    result = cursor.pgresult
    assert result is not None
    names = [column.name for column in cursor.description]
    rows = [
        [_shown(result.get_value(row, column)) for column in range(result.nfields)] for row in range(result.ntuples)
    ]
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
        return
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for line in (names, ["-" * width for width in widths], *rows):
        print(" | ".join(f"{value:<{width}}" for value, width in zip(line, widths, strict=True)).rstrip())
    print(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")


def _shown(value: bytes | None) -> str:
    return "" if value is None else value.decode()
