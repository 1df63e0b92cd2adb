"""``python -m tools.clients FOLDER``: what real clients sent, replayed, and its part of docs/compatibility.md.

FOLDER holds ``fixture.sql``, captured queries with PostgreSQL's answers, and ``replay.py``, which compares outcome,
columns' names and type oids. Starts a Millstream, makes what it can of the fixture, prints what was refused and what
differs, and writes the counts per client with what is left by name. Where a recorded parameter has a type of the
fixture's, whose oid each server gives anew, that is this server's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
from pglast import split

from tests.rig.server import Millstream
from tools.compatibility import CLIENTS, PAGE, with_part

_COUNT: Final = re.compile(r"^(\w+)\s+n=(\d+)\s+ok=(\d+) ", re.MULTILINE)
#: The types of parameters that the recorded server numbered, by its oids.
_TYPES: Final = {16530: "mood[]"}
_PARAMETERS: Final = re.compile(r"(?<= params=\[)[0-9, ]+(?=\])")
_DIFFERENT: Final = re.compile(r"^(\w+/\d+) (\w+) -> (\w+) (.*)$", re.MULTILINE)


def main() -> int:
    """Replays and writes."""
    parser = argparse.ArgumentParser(prog="python -m tools.clients", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-page", action="store_true", help="leave docs/compatibility.md as it is")
    chosen = parser.parse_args()
    with Millstream(settings={"spark_enabled": False}) as server:
        for statement, message in refused(server, (chosen.folder / "fixture.sql").read_text()):
            print(f"not made: {statement[:80]!r}: {message}")
        with TemporaryDirectory() as folder:
            retyped(server, chosen.folder, Path(folder))
            output = replayed(chosen.folder, Path(folder), server.dsn())
    print(output)
    if not chosen.no_page:
        PAGE.write_text(with_part(PAGE.read_text(), CLIENTS, section(output)))
    return 0


def refused(server: Millstream, fixture: str) -> Iterator[tuple[str, str]]:
    """Runs a script statement by statement; those that fail, and why."""
    with server.connect() as connection:
        connection.autocommit = True
        for statement in split(fixture, with_parser=False):
            try:
                connection.execute(statement.encode())
            except psycopg.Error as error:
                yield statement, str(error.diag.message_primary)


def retyped(server: Millstream, folder: Path, own: Path) -> None:
    """Copies what was captured with this server's oids of the fixture's types in the place of the recorded one's."""
    with server.connect() as connection:
        oids = {str(old): str(connection.execute("SELECT to_regtype(%s)::oid", [name]).fetchone()[0])  # type: ignore[index]  # one row
                for old, name in _TYPES.items()}  # fmt: skip
    shutil.copytree(folder, own, dirs_exist_ok=True, ignore=shutil.ignore_patterns("replay.py"))
    for path in (own / "captured").iterdir():
        text = path.read_text()
        path.write_text(_PARAMETERS.sub(lambda match: ", ".join(oids.get(i, i) for i in match[0].split(", ")), text))


def replayed(folder: Path, captured: Path, dsn: str) -> str:
    """What the replay prints of what was captured."""
    command = [sys.executable, str(folder / "replay.py"), "--dsn", dsn, "--show", "1000"]
    environment = {**os.environ, "CAPTURED_HOME": str(captured)}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def counts(output: str) -> dict[str, tuple[int, int]]:
    """Queries, and those with PostgreSQL's outcome, by client."""
    return {client: (int(every), int(equal)) for client, every, equal in _COUNT.findall(output)}


def section(output: str) -> Iterator[str]:
    """The page's part."""
    found = counts(output)
    every, equal = (sum(column) for column in zip(*found.values(), strict=True))
    yield CLIENTS
    yield "Queries that clients sent to PostgreSQL 15 are replayed on Millstream (`python -m tools.clients`). The table"
    yield "counts those that succeed or fail as on PostgreSQL, with equal column names and type oids.\n"
    yield "| client | queries | as in PostgreSQL |\n|---|---:|---:|"
    for client, numbers in found.items():
        yield f"| {client} | {numbers[0]} | {numbers[1]} |"
    yield f"| all | {every} | {equal} |\n"
    different = _DIFFERENT.findall(output)
    yield "The others:\n" if different else "All queries are equal."
    for name, wanted, state, message in different:
        told = message.partition(" | ")[0].removeprefix("ERROR:").strip()
        yield f"- `{name}`: {wanted} on PostgreSQL, {state} on Millstream: {told}"


if __name__ == "__main__":
    sys.exit(main())
