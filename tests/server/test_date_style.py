"""DateStyle: dates and timestamps shown in each style and read in each order, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]

STYLES: Final = tuple(
    f"{style}, {order}" for style in ("ISO", "SQL", "Postgres", "German") for order in ("MDY", "DMY", "YMD")
)
QUERIES: Final = (
    "SELECT date '2020-03-04', timestamp '2020-03-04 05:06:07.25', timestamptz '2020-07-04 05:06:07+00', time '04:05'",
    "SELECT timestamptz '1850-05-05 01:02:03+00', date '0001-01-03', timestamp '9999-12-30 23:59:59.9', NULL::date",
    "SELECT date 'infinity', timestamp '-infinity', timestamptz 'infinity', date '-infinity'",
    "SELECT ARRAY[date '2020-03-04', NULL], ARRAY[timestamp '2020-03-04 05:06:07'], ROW(date '2020-03-04', 1)",
    "SELECT daterange('2020-03-04', '2020-04-05'), tsrange('2020-03-04', NULL), tstzrange('2020-03-04', '2020-04-05')",
    "SELECT timestamptz '2020-03-04 05:06:07+00' + g * interval '13 days' FROM generate_series(1, 30) AS g",
    "SELECT '01/02/2003'::date, '1.2.2003'::timestamp, '01-02-2003 04:05'::timestamptz, '{01/02/2003}'::date[]",
    "SELECT '[01/02/2003,03/04/2005)'::daterange, '2003-01-02'::date, '20030102'::date, '2 Mar 2003'::date",
    "SELECT '10/11/12'::date, '10-Mar-12'::date, 'Mar 10 12'::date, '2012 10 11'::date, '12 October 11'::date",
    "SELECT '13/01/2003'::date",
    "SELECT '01/13/2003'::date",
    "SELECT '03/13/01'::date",
    "SELECT to_jsonb(date '2020-03-04'), json_build_array(timestamp '2020-03-04 05:06:07'), '1/2/2003'::text",
    "SELECT to_char(date '2020-03-04', 'DD.MM.YYYY'), extract(year FROM date '2020-03-04'), date '1/2/2003' + 1",
    "SELECT day, moment FROM styled WHERE day <> '01/02/2003' ORDER BY day",
)
#: Features that an engine would support in one style only.
WITHIN: Final = (
    ("SQL, MDY", "SELECT day::text FROM styled"),
    ("German, DMY", "SELECT 'on ' || moment FROM styled"),
    ("Postgres, MDY", "SELECT to_json(daterange(day, NULL)) FROM styled"),
    ("ISO, DMY", "SELECT ('1/2/' || 2000 + number)::date FROM styled"),
    ("ISO, YMD", 'SELECT * FROM json_to_record(\'{"a": "1/2/3"}\') AS found (a date)'),
    ("ISO, DMY", "CREATE TABLE not_styled (day date DEFAULT '1/2/2003')"),
    ("SQL, DMY", "CREATE VIEW not_styled AS SELECT day FROM styled WHERE day > '1/2/2003'"),
)
COPIED: Final = "01/02/03\t03-04-05 06:07\t1\n13 Mar 2004\t2004-05-06 07:08:09.5\t2\n"


def prepared(client: Client) -> Client:
    client.autocommit = True
    client.execute("SET TimeZone = 'Europe/Berlin'")
    client.execute("CREATE TABLE styled (day date, moment timestamptz, number int)")
    client.execute("INSERT INTO styled VALUES ('2020-03-04', '2020-03-04 05:06:07+00', 3), ('2003-02-01', NULL, 4)")
    return client


@pytest.fixture(scope="module")
def both(running: Millstream, postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    with postgres.connect() as client:
        client.autocommit = True
        client.execute("CREATE DATABASE styles")
    with running.connect() as ours, psycopg.connect(postgres.dsn("styles")) as theirs:
        yield prepared(ours), prepared(theirs)
        ours.execute("DROP TABLE styled")


def outcome(client: Client, query: str) -> object:
    """The received texts, or the error."""
    found = client.pgconn.exec_(query.encode())
    if not found.ntuples:
        return found.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    return [[found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_values_are_shown_and_read_as_by_postgresql(both: tuple[Client, Client], style: str) -> None:
    for client in both:
        client.execute(f"SET DateStyle = '{style}'".encode())
        assert client.info.parameter_status("DateStyle") == style
    for query in QUERIES:
        found, wanted = (outcome(client, query) for client in both)
        assert found == wanted, query
    copied = []
    for client in both:
        with client.transaction(force_rollback=True):
            with client.cursor().copy("COPY styled FROM STDIN") as copy:
                copy.write(COPIED)
            # parameters are texts, too
            client.execute("INSERT INTO styled VALUES (%s, %s, 9)", ("10/11/12", "9/10/11 12:13"))
            with client.cursor().copy("COPY (SELECT * FROM styled ORDER BY number) TO STDOUT") as copy:
                copied.append(b"".join(copy))
    assert copied[0] == copied[1]


@pytest.mark.slow
@pytest.mark.parametrize(("style", "query"), WITHIN)
def test_what_an_engine_would_show_or_read_is_refused(both: tuple[Client, Client], style: str, query: str) -> None:
    ours, _ = both
    ours.execute(f"SET DateStyle = '{style}'".encode())
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"DateStyle|order"):
        ours.execute(query.encode())
    ours.execute("SET DateStyle = 'ISO, MDY'")
    with ours.transaction(force_rollback=True):
        ours.execute(query.encode())


@pytest.mark.slow
def test_definitions_are_read_in_one_order_by_everybody(both: tuple[Client, Client]) -> None:
    ours, _ = both
    with ours.transaction(force_rollback=True):
        ours.execute("SET DateStyle = 'ISO, MDY'")
        ours.execute("CREATE TABLE kept (day date DEFAULT '1/2/2003' CHECK (day < '3/4/2005'), number int)")
        ours.execute("CREATE VIEW kept_view AS SELECT date '1/2/2003' AS day")
        ours.execute("CREATE FUNCTION kept_day() RETURNS date RETURN date '1/2/2003'")
        ours.execute("SET DateStyle = 'German, DMY'")
        ours.execute("INSERT INTO kept (number) VALUES (1)")
        ours.execute("INSERT INTO kept VALUES ('3/3/2005', 2)")
        with pytest.raises(psycopg.errors.CheckViolation), ours.transaction():
            ours.execute("INSERT INTO kept VALUES ('4/3/2005', 3)")
        query = "SELECT day FROM kept WHERE number = 1 UNION ALL TABLE kept_view UNION ALL SELECT kept_day()"
        assert outcome(ours, query) == [[b"02.01.2003"]] * 3


@pytest.mark.slow
def test_a_text_of_a_function_is_read_when_it_is_called_also_in_a_view(both: tuple[Client, Client]) -> None:
    ours, _ = both
    with ours.transaction(force_rollback=True):
        ours.execute("SET DateStyle = 'ISO, MDY'")
        ours.execute("CREATE FUNCTION is_then(date) RETURNS boolean LANGUAGE sql AS $$ SELECT $1 = '1/2/2003' $$")
        ours.execute("CREATE VIEW then_view AS SELECT is_then('2003-01-02') AS early, is_then('2003-02-01') AS late")
        assert outcome(ours, "TABLE then_view") == [[b"t", b"f"]]
        ours.execute("SET DateStyle = 'DMY'")
        assert outcome(ours, "TABLE then_view") == [[b"f", b"t"]]
