"""Examples of the documentation: read from Markdown in their order, run by psql as a reader would, compared as printed.

Owns: which parts of a page are SQL examples. A fenced block marked ``sql`` is one, with the unmarked block below it as
its printed output when that ends like a result of psql; so is a statement between back-quotes in running text. Dots in
a statement stand for a text in FILLED; an example with other dots is an error.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tests.rig.server import DATABASE, ROOT, USER, Millstream

#: The texts that a reader would write in place of an example's dots.
FILLED = {
    "orders (...)": "orders (id bigint, price numeric(12, 2))",
    "'/data/orders'": "'{folder}'",
    "AS ...": "AS SELECT uid, count(*) FROM posts GROUP BY uid",
    "SET (...)": "SET (maintenance_engine = 'auto')",
}
FENCED = r"^```(?P<language>\w*)\n(?P<block>.*?)^```$"
QUOTED = r"`(?P<inline>[^`]+)`"
PARTS = re.compile(f"{FENCED}|{QUOTED}", re.MULTILINE | re.DOTALL)
STATEMENT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|EXPLAIN|COPY|SET|SHOW|\\copy)( \S+){2,}")
RESULT = re.compile(r"^\(\d+ rows?\)\n\Z", re.MULTILINE)


class Example(Struct, frozen=True):
    """The typed text, and the expected output; None if the page shows no output."""

    line: int
    sql: str
    output: str | None = None


def pages() -> list[Path]:
    """The documentation's pages."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(text: str) -> list[Example]:
    """The examples of a page, in its order."""
    found: list[Example] = []
    is_open = False
    for part in PARTS.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        block = part["block"]
        if block is not None and part["language"] == "sql":
            found.append(Example(line, block))
        elif block is not None and is_open and RESULT.search(block):
            found[-1] = Example(found[-1].line, found[-1].sql, block)
        elif part["inline"] is not None and STATEMENT.match(sql := " ".join(part["inline"].split())):
            found.append(Example(line, sql))
        is_open = part["language"] == "sql"
    return found


def quoted(text: str) -> Iterator[str]:
    """The texts between back-quotes in running text."""
    for part in PARTS.finditer(text):
        if part["inline"] is not None:
            yield " ".join(part["inline"].split())


def run(server: Millstream, folder: Path, example: Example) -> None:
    """Types an example into psql in ``folder``; it must succeed and print what the page says."""
    done = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U", USER, DATABASE],
        input=filled(example.sql, folder) + "\n",
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"line {example.line}: {example.sql}\n{done.stderr}"
    if example.output is not None:
        assert printed(done.stdout) == printed(example.output), f"line {example.line} prints something else"


def filled(sql: str, folder: Path) -> str:
    """An example with its dots replaced."""
    for dots, words in FILLED.items():
        sql = sql.replace(dots, words.format(folder=folder))
    assert "..." not in sql, f"say in FILLED what the dots stand for: {sql}"
    return sql if sql.startswith("\\") or sql.rstrip().endswith(";") else f"{sql};"


def printed(text: str) -> list[str]:
    """The lines of an output without trailing blanks, and without empty lines around it."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]
