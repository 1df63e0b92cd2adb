"""psql: every \\d command compared with PostgreSQL, \\gdesc, \\watch, \\copy, scripts, queries of tab completion."""

from __future__ import annotations

import itertools
import os
import pty
import re
import select
import subprocess
from pathlib import Path
from subprocess import PIPE
from typing import Final

import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

OBJECTS: Final = Path(__file__).with_name("dumped.sql").read_text()
#: Commands without a pattern, with S and +, and for one object.
COMMANDS: Final = (
    *("\\d", "\\d+", "\\dS", "\\da", "\\dA", "\\dA+", "\\dAc", "\\dAf", "\\dAo", "\\dAp", "\\db", "\\db+", "\\dc"),
    *("\\dconfig", "\\dC", "\\dC+", "\\dd", "\\dD", "\\dD+", "\\ddp", "\\dE", "\\dE+", "\\des", "\\des+", "\\det"),
    *("\\det+", "\\deu", "\\dew", "\\dew+", "\\df", "\\df+ pg_catalog.abs", "\\dF", "\\dFd", "\\dFp", "\\dFt"),
    *("\\dg", "\\dg+", "\\di", "\\di+", "\\dl", "\\dL", "\\dL+", "\\dm", "\\dn", "\\dn+", "\\do pg_catalog.+", "\\dO"),
    *("\\dp", "\\dP", "\\drds", "\\dRp", "\\dRs", "\\ds", "\\ds+", "\\dt", "\\dt+", "\\dT", "\\dT+", "\\du", "\\dv"),
    *("\\dv+", "\\dx", "\\dX", "\\dy", "\\l", "\\l+", "\\z", "\\sv plain", "\\d shop.customers", "\\d+ shop.orders"),
    *("\\d shop.orders_customer", "\\d+ plain", "\\d shop.numbers", "\\dt shop.*", "\\d pairs", "\\dT+ shop.mood"),
)
#: Commands with a pattern; each has variants that include system objects, and more details.
VARIED: Final = tuple(
    f"\\{name}{variant} pg_a*"
    for name in (
        *(
            "d",
            "da",
            "dA",
            "dAc",
            "dAf",
            "dAo",
            "dAp",
            "db",
            "dc",
            "dC",
            "dconfig",
            "dd",
            "dD",
            "ddp",
            "dE",
            "des",
            "det",
        ),
        *(
            "deu",
            "dew",
            "df",
            "dfa",
            "dfn",
            "dfp",
            "dft",
            "dfw",
            "dF",
            "dFd",
            "dFp",
            "dFt",
            "dg",
            "di",
            "dl",
            "dL",
            "dm",
        ),
        *("dn", "do", "dO", "dp", "dP", "dPi", "dPt", "dPn", "drds", "dRp", "dRs", "ds", "dt", "dT", "du", "dv", "dx"),
        *("dX", "dy", "l", "z", "dtvmsE"),
    )
    for variant in ("", "S", "+", "S+")
)
#: Commands that list only user objects, with output equal to PostgreSQL's.
EQUAL: Final = (
    *("\\dt shop.*", "\\ds shop.*", "\\dv shop.*", "\\dT shop.*", "\\d refs", "\\d shop.numbers"),
    *("\\d shop.orders_customer", "\\d shop.orders_day", '\\d "Odd name"', "\\dd shop.*", "\\d over_view"),
    *(f"\\d{plus} {name}" for plus in ("", "+") for name in ("shop.customers", "shop.orders", "pairs", "refs")),
    *(f"\\d{plus} {name}" for plus in ("", "+") for name in ("shop.orders_partial", "pairs_order")),
    *("\\d shop.customers_email_key", "\\d+ shop.orders_id_seq", "\\d shop.sums", "\\df+ shop.*", "\\dD+ shop.*"),
    *("\\dT+ shop.*", "\\dp shop.*", "\\di shop.*", "\\ddp", "\\dO shop.*", "\\dm", "\\drds", "\\dRs", "\\dX", "\\dy"),
    *("\\d nothing", "\\sf shop.dearer", "\\sf+ shop.doubled", "\\d pg_class", "\\dC+ int*", "\\dft pg_catalog.*"),
    *(
        "\\dF+ english",
        "\\dFp+",
        "\\dFd+ simple",
        "\\dFt+ ispell",
        "\\dAo btree",
        "\\dAp btree int4_ops",
        "\\dcS *latin1*",
    ),
)
_HEADER: Final = re.compile(r"^\s*[-+]+$")


def psql(dsn: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script."""
    return subprocess.run(["psql", "-X", *options, dsn], input=text, capture_output=True, text=True)


@pytest.fixture(scope="module")
def both(server: Millstream, postgres: Postgres) -> tuple[str, str]:
    """Both servers with the same objects."""
    with postgres.connect() as client:
        client.execute("CREATE DATABASE described")
    dsns = (server.dsn(), postgres.dsn("described"))
    for dsn in dsns:
        done = psql(dsn, OBJECTS, "-q", "-v", "ON_ERROR_STOP=1")
        assert done.returncode == 0, done.stderr
    return dsns


def answers(dsn: str, commands: tuple[str, ...]) -> list[str]:
    """The output of each command."""
    script = "".join(f"\\echo ==== {place}\n{command}\n" for place, command in enumerate(commands))
    done = psql(dsn, script, "-P", "footer=off", "-P", "pager=off")
    assert "ERROR" not in done.stderr, done.stderr
    return re.split(r"^==== \d+\n", done.stdout, flags=re.MULTILINE)[1:]


def columns(answer: str) -> list[str]:
    """The headers of the tables in an output."""
    lines = answer.splitlines()
    heads = [lines[place - 1] for place, line in enumerate(lines) if place and _HEADER.match(line)]
    return [" | ".join(name.strip() for name in head.split("|")) for head in heads]


@pytest.mark.sample(2)
@pytest.mark.parametrize("commands", [COMMANDS, VARIED], ids=["plain", "varied"])
def test_every_command_has_postgresqls_columns(both: tuple[str, str], commands: tuple[str, ...], whole: bool) -> None:
    if commands is VARIED and not whole:
        commands = VARIED[::3]  # one or two of the four variants of each command
    ours, theirs = (answers(dsn, commands) for dsn in both)
    for command, found, wanted in zip(commands, ours, theirs, strict=True):
        assert columns(found) == columns(wanted) or not columns(wanted), f"{command}\n{found}\n{wanted}"


def test_our_objects_look_as_in_postgresql(both: tuple[str, str]) -> None:
    ours, theirs = (answers(dsn, EQUAL) for dsn in both)
    for command, found, wanted in zip(EQUAL, ours, theirs, strict=True):
        renamed = re.sub(r"\bmillstream\b", "postgres", found)
        assert words(renamed) == words(wanted), command


def words(text: str) -> list[str]:
    """The text of a table without its column widths."""
    return [word for word in text.split() if set(word) - set("-+|")]


def test_watch_gdesc_gexec_and_variables(both: tuple[str, str]) -> None:
    for dsn in both:
        done = psql(dsn, "SELECT 1 AS one, 'x'::varchar(3) AS two, 1.5::numeric(4, 2) AS three \\gdesc\n", "-At")
        assert done.stdout == "one|integer\ntwo|character varying(3)\nthree|numeric(4,2)\n"
        script = "SELECT 2 AS n, 'three' AS word \\gset\n\\echo :n :word\n"
        script += "SELECT 'SELECT ' || g FROM generate_series(1, 2) g \\gexec\n"
        assert psql(dsn, script, "-At").stdout == "2 three\n1\n2\n"
        with subprocess.Popen(["psql", "-X", "-At", dsn], stdin=PIPE, stdout=PIPE, text=True) as watching:
            assert watching.stdin is not None and watching.stdout is not None
            watching.stdin.write("SELECT 40 + 2 \\watch 0.05\n")
            watching.stdin.flush()
            shown = [line for line in itertools.islice(watching.stdout, 9) if line == "42\n"]
            watching.terminate()
        assert len(shown) > 1


def test_copy_there_and_back(both: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("copy")
    for dsn in both:
        script = (
            f"CREATE TABLE copied (n int, s text);\n"
            f'\\copy copied FROM STDIN WITH (FORMAT csv)\n1,one\n2,"two, three"\n\\.\n'
            f"\\copy (SELECT * FROM copied ORDER BY n) TO '{folder}/out' WITH (FORMAT csv, HEADER)\n"
            f"\\copy copied FROM '{folder}/out' CSV HEADER\nSELECT n, s FROM copied ORDER BY n;\nDROP TABLE copied;\n"
        )
        done = psql(dsn, script, "-At", "-q", "-v", "ON_ERROR_STOP=1")
        assert not done.stderr, done.stderr
        assert done.stdout == "1|one\n1|one\n2|two, three\n2|two, three\n"
        assert (folder / "out").read_text() == 'n,s\n1,one\n2,"two, three"\n'


def test_a_script_in_one_transaction(both: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("script") / "script.sql"
    script.write_text("CREATE TABLE once (n int);\nINSERT INTO once VALUES (1);\nSELECT nothing;\n")
    for dsn in both:
        done = subprocess.run(
            ["psql", "-X", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(script), dsn], capture_output=True, text=True
        )
        assert done.returncode == 3 and 'column "nothing" does not exist' in done.stderr
        assert psql(dsn, "SELECT to_regclass('once') IS NULL", "-At").stdout == "t\n"


#: Typed text before a tab, and the completion.
COMPLETED: Final = (
    ("SELECT * FROM shop.cust", "omers"),
    ("SELECT * FROM pg_stat_activ", "ity "),
    ("ALTER SEQUENCE shop.numb", "ers "),
    ("SET timez", "one"),
    ("\\d shop.orders_d", "ay "),
    ("UPDATE shop.customers SET na", "me "),
    ("DROP ROLE pg_read_all_d", "ata "),
    ("DROP INDEX shop.orders_cu", "stomer "),
    ("COPY shop.cust", "omers "),
    ("DROP VIEW pla", "in "),
    ("ALTER TYPE shop.mo", "od "),
    ("DROP FUNCTION gree", "ting "),
    ("\\dT shop.mo", "od "),
    ("\\sf greet", "ing "),
    ("ALTER TABLE shop.customers DROP COLUMN ema", "il "),
    ("INSERT INTO shop.cust", "omers "),
    ("\\dn sho", "p "),
    ("ALTER TABLE shop.customers RENAME CONSTRAINT sa", "ne "),
    ("ALTER DOMAIN shop.posi", "tive "),
    ("CREATE INDEX ON shop.ord", "ers "),
    ("VACUUM shop.ord", "ers "),
    ("LOCK TABLE pai", "rs "),
    ('SELECT * FROM "Odd', " name"),
    ("\\d+ shop.su", "ms "),
    ("SET search_path TO sho", "p "),
    ("ALTER VIEW star", "red "),
    ("DROP SCHEMA sho", "p "),
    ("GRANT pg_read_all_d", "ata "),
    ("SET ROLE pg_mon", "itor "),
    ("\\df shop.dou", "bled "),
    ("COMMENT ON CONSTRAINT sa", "ne "),
    ("DEALLOCATE ", "ALL "),
)


def test_tab_completion(both: tuple[str, str]) -> None:
    for dsn in both:
        with Terminal(["psql", "-X", "-q", "-P", "pager=off", dsn]) as terminal:
            terminal.until("=# ")
            for typed, completed in COMPLETED:
                terminal.send(f"{typed}\t")
                shown = terminal.until(completed)
                assert "ERROR" not in shown, f"{typed}: {shown}"
                terminal.send("\x15")  # clears the line


class Terminal:
    """A program that runs on a pseudo-terminal."""

    def __init__(self, command: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb", "INPUTRC": os.devnull},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._ours)
        self._process.wait(60)

    def send(self, text: str) -> None:
        """Types a text."""
        os.write(self._ours, text.encode())

    def until(self, text: str) -> str:
        """The output up to a text. Fails after a minute without new output."""
        shown = ""
        while text not in shown:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"no {text!r} in {shown!r}"
            shown += os.read(self._ours, 4096).decode()
        return shown
