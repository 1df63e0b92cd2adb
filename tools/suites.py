"""``python -m tools.suites SUITE --source FOLDER``: another project's own tests on PostgreSQL and on Millstream.

SUITE is asyncpg's, or SQLAlchemy's of a dialect with one driver. FOLDER is the unpacked source package of the version
that is installed (``pip download --no-binary :all: --no-deps NAME==VERSION``); asyncpg's tests also need the package
``distro`` (1.9.0). Each server runs the whole suite, SQLAlchemy's with what ``tools.suite_plugin`` leaves out, and
pytest's documents are kept, so that suites may run one at a time. Prints what passes on PostgreSQL alone.
``python -m tools.suites page`` writes this of all suites into docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from msgspec import Struct

from tests.rig.postgres import Postgres
from tests.rig.server import DATABASE, USER, Millstream
from tools.compatibility import PAGE, ROOT, SUITES, with_part
from tools.suite_results import Ran, failures, outcome, section, totals

if TYPE_CHECKING:
    from collections.abc import Iterator

ASYNCPG: Final = "asyncpg"
DRIVERS: Final = {f"sqlalchemy+{driver}": driver for driver in ("psycopg2", "psycopg", "asyncpg")}
SUITE_NAMES: Final = (ASYNCPG, *DRIVERS)
SERVERS: Final = ("postgres", "millstream")
#: What SQLAlchemy's tests expect to be there.
SCHEMAS: Final = ("test_schema", "test_schema_2")
RESULTS: Final = Path(tempfile.gettempdir()) / "millstream-suites"
#: Longer than any of SQLAlchemy's tests takes, which wait for a lock at most; and of asyncpg's, and of a file of them.
_DIALECT, _DRIVER, _FILE = 120, 20, 300


class Place(Struct, frozen=True):
    """Where a server is."""

    port: int
    user: str
    database: str


def main() -> int:
    """Runs, prints and writes."""
    parser = argparse.ArgumentParser(prog="python -m tools.suites", description=__doc__)
    parser.add_argument("suite", choices=(*SUITE_NAMES, "page"))
    parser.add_argument("--source", type=Path, help="the unpacked source package")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where pytest's documents are kept")
    parser.add_argument("--server", choices=SERVERS, action="append", help="one server; what the other gave stays")
    parser.add_argument("--match", default="", help="pytest's -k")
    chosen = parser.parse_args()
    if chosen.suite == "page":
        ran = {suite: outcomes(chosen.results / suite) for suite in SUITE_NAMES}
        PAGE.write_text(with_part(PAGE.read_text(), SUITES, section(ran)))
        return 0
    if chosen.source is None:
        parser.error("a suite needs its --source")
    for name in chosen.server or SERVERS:
        results = chosen.results / chosen.suite / name
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        with server(name) as place:
            run(chosen.suite, chosen.source, place, results, chosen.match)
    wanted, found = outcomes(chosen.results / chosen.suite)
    print("\n".join([*failures({chosen.suite: (wanted, found)}), totals(wanted, found)]))
    return 0


def outcomes(results: Path) -> tuple[Ran, Ran]:
    """What a suite gave on PostgreSQL and on Millstream."""
    wanted, found = (outcome(results / name) for name in SERVERS)
    return wanted, found


@contextmanager
def server(name: str) -> Iterator[Place]:
    """A server of its own."""
    if name == "millstream":
        with Millstream(settings={"spark_enabled": False, "lock_timeout": _DIALECT}) as ours:
            yield Place(ours.port, USER, DATABASE)
        return
    judge = Postgres()
    try:
        yield Place(judge.port, "postgres", "postgres")
    finally:
        judge.stop()


def run(suite: str, folder: Path, place: Place, results: Path, match: str) -> None:
    """Runs a suite on a server and leaves its documents."""
    if suite in DRIVERS:
        run_dialect(folder, DRIVERS[suite], place, results, match)
    else:
        run_driver(folder, place, results, match)


def run_dialect(folder: Path, driver: str, place: Place, results: Path, match: str) -> None:
    """SQLAlchemy's tests of a dialect: one file."""
    address = f"{place.user}@127.0.0.1:{place.port}/{place.database}"
    with psycopg.connect(f"postgresql://{address}", autocommit=True) as connection:
        for name in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {name}".encode())
    arguments = [
        *("test/dialect/test_suite.py", "-p", "tools.suite_plugin", "-o", "addopts=", "--maxfail", "100000"),
        *("--dburi", f"postgresql+{driver}://{address}", "--timeout", str(_DIALECT), "-k", match),
    ]
    _pytest(folder, arguments, results / "suite.xml", {"PYTHONPATH": str(ROOT)}, None)


def run_driver(folder: Path, place: Place, results: Path, match: str) -> None:
    """asyncpg's tests, each file by itself. Where they name the database ``postgres``, it is called as this one is."""
    asked = {"PGHOST": "127.0.0.1", "PGPORT": str(place.port), "PGUSER": place.user, "PGDATABASE": place.database}
    with tempfile.TemporaryDirectory() as scratch:
        tests = Path(scratch) / "tests"
        shutil.copytree(folder / "tests", tests)
        for path in tests.glob("*.py"):
            path.write_text(path.read_text().replace("database='postgres'", f"database={place.database!r}"))
        for path in sorted(tests.glob("test_*.py")):
            arguments = [f"tests/{path.name}", "--timeout", str(_DRIVER), "-k", match]
            _pytest(Path(scratch), arguments, results / f"{path.stem}.xml", asked, _FILE)


def _pytest(
    folder: Path, arguments: list[str], document: Path, environment: Mapping[str, str], seconds: float | None
) -> None:
    """One call of pytest, whose document and output are left side by side."""
    command = [
        *(sys.executable, "-m", "pytest", *arguments),
        *("-q", "-p", "no:cacheprovider", "--tb", "short", "--junitxml", str(document)),
    ]
    with document.with_suffix(".txt").open("wb") as output:
        try:
            subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **environment},
                check=False,
                stdout=output,
                stderr=output,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            print(f"{document.stem} did not end within {seconds} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
