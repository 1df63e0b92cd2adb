"""``python -m tools.regression --source FOLDER [NAME ...]``: PostgreSQL's own regression tests, statement by statement.

FOLDER is PostgreSQL's unpacked source (``apt-get source postgresql-15``). Each file of SQL runs on a PostgreSQL and on
Millstream, after ``test_setup``, which makes the tables that they share. What psql itself would do is left out, and
EXPLAIN, whose text is each server's own. What SQL leaves open is not compared (``regression_order``), and what follows
from statements that were refused before is told from what differs (``regression_objects``). Prints what is not equal;
without NAMEs all of ``FILES`` run, and docs/compatibility.md gets the table.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
from pglast import split
from pglast.parser import ParseError
from psycopg.types.string import TextLoader

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.sql.test_scripts import Connection, Outcome, outcome
from tools.compatibility import PAGE, REGRESSION, with_part
from tools.regression_objects import Followed, objects
from tools.regression_order import Queries, Rows

_SETUP: Final = "test_setup"
#: Which views of the catalog show.
_DATABASE: Final = "millstream"
#: Without what is about triggers, plpgsql, partitions, inheritance and types that Millstream has none of.
FILES: Final = (
    *("boolean", "char", "name", "varchar", "text", "int2", "int4", "int8", "oid", "float4", "float8", "numeric"),
    *("uuid", "enum", "strings", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "horology"),
    *(
        "regex",
        "arrays",
        "rangetypes",
        "multirangetypes",
        "json",
        "jsonb",
        "jsonpath",
        "jsonb_jsonpath",
        "rowtypes",
        "domain",
        "create_type",
    ),
    *("select", "select_into", "select_distinct", "select_distinct_on", "select_implicit", "select_having"),
    *("subselect", "union", "case", "join", "aggregates", "window", "groupingsets", "with", "limit", "tsrf"),
    *("rangefuncs", "tablesample", "expressions", "misc_functions", "regproc", "insert", "insert_conflict", "update"),
    *("delete", "returning", "merge", "truncate", "copy2", "create_table_like", "create_view", "temp", "namespace"),
    *("identity", "generated", "sequence", "constraints", "foreign_key", "alter_table", "drop_if_exists"),
    *("prepare", "portals", "transactions", "privileges", "dependency", "comments", "advisory_lock", "guc"),
)
#: What a statement gave here, beside what it gave there. ``follows``: it names what a statement before left otherwise.
EQUAL, REFUSED, FOLLOWS, DIFFERENT = KINDS = ("equal", "refused", "follows", "different")
#: A numeric beyond what is kept here, an error that says so; docs/compatibility.md has it among the known differences.
_DIGITS: Final = re.compile(r"38 digits|precision 38")
#: Names that no file makes.
_BUILT_IN: Final = """
    SELECT typname FROM pg_type UNION SELECT proname FROM pg_proc UNION SELECT relname FROM pg_class
    UNION SELECT nspname FROM pg_namespace UNION SELECT rolname FROM pg_roles UNION SELECT 'pg_temp'
"""
_SET: Final = re.compile(r"\\set\s+(\w+)\s+:abs_srcdir\s+'(.*)'")
_FROM_CLIENT: Final = re.compile(r"(?i)copy\b.*\bfrom\s+std(?:in|out)\b[^;]*;\s*$")
_END: Final = re.compile(r";[ \t]*\n")
_COMMENT: Final = re.compile(r"(?m)^\s*--.*$")
_LEFT_OUT: Final = re.compile(r"(?is)explain\b|copy\b.*\bto\s+(stdout|')|copy\b.*\bfrom\s+std")
#: Their texts are compared, not what the driver makes of them, which has no infinite dates.
_TEXTS: Final = ("date", "timestamp", "timestamptz", "time", "timetz", "interval", "json", "jsonb")
#: A statement, and the rows that follow it in the file where it is a COPY.
Item = tuple[str, str | None]


def main() -> int:
    """Runs, prints and writes."""
    parser = argparse.ArgumentParser(prog="python -m tools.regression", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="files; all without any")
    parser.add_argument("--source", type=Path, required=True, help="PostgreSQL's unpacked source")
    chosen = parser.parse_args()
    counted = {}
    judge = Postgres()
    try:
        with Millstream(settings={"spark_enabled": False}) as server:
            comparison = Comparison(server, judge, chosen.source / "src/test/regress")
            for name in (_SETUP, *(chosen.names or FILES)):
                counted[name] = comparison.file(name, is_told=name in chosen.names)
                print(f"{name}: {dict(counted[name])}", flush=True)
    finally:
        judge.stop()
    if not chosen.names:
        PAGE.write_text(with_part(PAGE.read_text(), REGRESSION, _section(counted)))
    return 0


class Comparison:
    """Files, one after the other, on both servers, and what they have left otherwise on one of them."""

    def __init__(self, server: Millstream, judge: Postgres, folder: Path) -> None:
        self._server, self._judge, self._folder = server, judge, folder
        self._followed = Followed()
        with judge.connect() as theirs:
            theirs.execute(f"CREATE DATABASE {_DATABASE}".encode())
            self._built_in = frozenset(str(row[0]) for row in theirs.execute(_BUILT_IN))

    def file(self, name: str, *, is_told: bool) -> Counter[str]:
        """How many statements of a file gave what; what is not equal is told."""
        found: Counter[str] = Counter()
        for item, kind, here, there in self.statements(name):
            found[kind] += 1
            if is_told and kind != EQUAL:
                print(f"{kind}: {item[0]}\n  found  {here}\n  wanted {there}")
        return found

    def statements(self, name: str) -> Iterator[tuple[Item, str, Outcome, Outcome]]:
        """A file's statements, in order, with what each gave."""
        text = (self._folder / "sql" / f"{name}.sql").read_text()
        queries = Queries()
        self._followed.begin()
        with self._server.connect() as ours, self._judge.connect(dbname=_DATABASE) as theirs:
            for connection in (ours, theirs):
                connection.execute("SET statement_timeout = '20s'")
                for kind in _TEXTS:
                    connection.adapters.register_loader(kind, TextLoader)
            for item in items(text, self._folder):
                here, there = _outcome(ours, item), _outcome(theirs, item)
                about = objects(item[0], self._built_in)
                kind = compared(here, there, queries.rows(item[0]))
                if kind == DIFFERENT and self._followed.explains(about):
                    kind = FOLLOWS
                self._followed.note(
                    about,
                    is_equal=kind == EQUAL,
                    is_done=here.error is there.error is None,
                    states=(ours.info.transaction_status, theirs.info.transaction_status),
                )
                yield item, kind, here, there


def compared(here: Outcome, there: Outcome, rows: Rows) -> str:
    """EQUAL, REFUSED or DIFFERENT. Places of errors do not count, nor what SQL leaves open."""
    errors = tuple(item.error[0] if item.error is not None else None for item in (here, there))
    if errors[0] == errors[1] is not None or rows.are_same(here, there):
        return EQUAL
    is_refused = errors[0] == "0A000" or (errors[0] == "22003" and _DIGITS.search(here.message or ""))
    return REFUSED if is_refused else DIFFERENT


def items(text: str, folder: Path) -> Iterator[Item]:
    """A file's statements, in order."""
    variables = {"abs_srcdir": str(folder)}
    lines = iter(text.split("\n"))
    waiting: list[str] = []
    for line in lines:
        setting = _SET.match(line)
        if setting is not None:
            variables[setting.group(1)] = str(folder) + setting.group(2)
        if line.startswith("\\"):
            continue
        for name, value in variables.items():
            line = line.replace(f":'{name}'", f"'{value}'")
        line = re.sub(r"\s*\\(gset|gexec|gdesc|gx|g|crosstabview|;).*$", ";", line)
        if _FROM_CLIENT.match(line):
            yield from _statements(waiting)
            yield line.rstrip("; "), "".join(f"{row}\n" for row in iter(lambda: next(lines, "\\."), "\\."))
        else:
            waiting.append(line)
    yield from _statements(waiting)


def _statements(lines: list[str]) -> Iterator[Item]:
    """What stands in lines, which are taken away; without what is each server's own."""
    text = "\n".join(lines)
    lines.clear()
    try:
        found = list(split(text, with_parser=False)) if text.strip() else []
    except ParseError:  # an escape that is wrong on purpose
        found = _END.split(text)
    for statement in found:
        bare = _COMMENT.sub("", statement).strip()
        if bare and not _LEFT_OUT.match(bare):
            yield bare, None


def _outcome(connection: Connection, item: Item) -> Outcome:
    statement, rows = item
    if rows is None:
        return outcome(connection, statement, is_bag=False)
    try:
        with connection.cursor().copy(statement.encode()) as copy:
            copy.write(rows)
    except psycopg.Error as error:
        return Outcome(None, (), (), (error.diag.sqlstate,))
    return Outcome("COPY", (), ())


def _section(counted: dict[str, Counter[str]]) -> list[str]:
    """The page's part."""
    total = sum(counted.values(), Counter())
    shares = ", ".join(f"{total[kind] / total.total():.1%} {kind}" for kind in KINDS)
    rows = [
        f"| {name} | {of.total()} | {' | '.join(str(of[kind]) for kind in KINDS)} |" for name, of in counted.items()
    ]
    return [
        REGRESSION,
        "`python -m tools.regression` runs the statements of PostgreSQL 15's own regression tests. Files about",
        "triggers, plpgsql, partitions, inheritance and types that Millstream lacks are left out; the remaining",
        "files use some of these, too. The order of rows is compared if ORDER BY determines it.\n",
        "- **refused**: 0A000, or 22003 for a numeric of more than 38 digits.",
        "- **follows**: the statement depends on an earlier one that was not equal, or its transaction failed.",
        "- **different**: everything else that is not equal.\n",
        f"Of {total.total():,} statements: {shares}.",
        "",
        f"| file | statements | {' | '.join(KINDS)} |",
        "|---|---:|---:|---:|---:|---:|",
        *rows,
    ]


if __name__ == "__main__":
    raise SystemExit(main())
