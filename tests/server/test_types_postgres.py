"""Every basic type, in every format, in both directions, into tables and streams: byte for byte as a real PostgreSQL
sends it.

PostgreSQL makes the values from their texts and sends them: as results (text and binary, by the simple and the extended
protocol) and as COPY (text, CSV and binary). Its output is the input of Millstream, as parameters and as COPY data, and
Millstream's output, from a table and from a continuous view over a stream, must be the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

TYPES: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("true", "false"),
    "int2": ("-32768", "32767", "0"),
    "int4": ("-2147483648", "2147483647", "7"),
    "int8": ("-9223372036854775808", "9223372036854775807", "0"),
    "float4": ("1.5", "-0", "3.4028235e38", "1e-45", "NaN", "-Infinity", "0.1"),
    "float8": ("0.1", "-0", "1e300", "5e-324", "NaN", "Infinity", "123456789012345680"),
    "numeric(20,4)": ("0", "-0.0001", "1234567890123456.7891", "10000", "0.5"),
    "numeric": ("0", "-12345.6789", "99999999999999999999", "0.0000000001"),
    "text": ("", "plain", "quotes \" and '", "back\\slash", "tab\tand\nline\r\n", "comma, semicolon;", "\\N", "ä€😀"),
    "varchar(12)": ("", "short", '"a","b"'),
    "char(6)": ("", "ab", "abcdef"),
    "bytea": ("\\x", "\\x00ff01", "\\x5c2c220a"),
    "date": ("1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "1582-10-15"),
    "time": ("00:00:00", "23:59:59.999999", "12:34:56.7"),
    "timetz": ("00:00:00+00", "23:59:59.999999-15:59:59", "12:34:56.7+05:30", "24:00:00-03", "04:05:06", "11:00+15"),
    "timestamp": ("2024-02-29 12:34:56.789", "1999-12-31 23:59:59.999999", "0001-01-01 00:00:00"),
    "timestamptz": ("2024-02-29 12:34:56.789+02", "1970-01-01 00:00:00+00"),
    "interval": ("0", "1 year 2 mons 3 days 04:05:06.789", "-1 mons -1 days -00:00:01", "100 years", "99:59:59"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "json": ('{"b": 1,  "a": [1, 2.50]}', "null", '"quoted, \\"text\\""'),
    "jsonb": ('{"b": 1, "a": [1, 2.50]}', "null", '"quoted, \\"text\\""'),
    "bit(10)": ("0000000000", "1010101011", "1111000000"),
    "varbit": ("", "1", "101010101", "00000000"),
    "money": ("0", "-0.01", "$1,234,567.895", "92233720368547758.07", "-92233720368547758.08", "12"),
    "inet": ("10.1.2.3", "10.1.2.3/8", "::1", "fe80::1/64", "::ffff:1.2.3.4", "0.0.0.0/0"),
    "cidr": ("10.0.0.0/8", "192.168.1", "1.2.3.4/32", "::/0", "2001:db8::/32"),
    "macaddr": ("08:00:2b:01:02:03", "ffffffffffff"),
    "macaddr8": ("08:00:2b:01:02:03", "08:00:2b:01:02:03:04:05"),
    "pg_lsn": ("0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"),
    "tid": ("(0,0)", "(4294967295,65535)"),
    "xid8": ("0", "9223372036854775807"),
    "pg_snapshot": ("1:1:", "10:20:10,14,15"),
    "point": ("(1,2)", "(-0,1e300)", "(NaN,Infinity)", "(0.1,123456789012345680)", "(1e15,1e-5)"),
    "lseg": ("[(0,0),(1.5,-2)]",),
    "box": ("(0,0),(1,1)", "(3,1),(1,3)"),
    "path": ("[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"),
    "polygon": ("((0,0),(1,1),(2,0))",),
    "line": ("{1,-1,0}", "[(0,0),(1,3)]", "[(2,0),(2,5)]"),
    "circle": ("<(1,2),3>", "((0,0),0.5)"),
    "tsvector": ("", "a fat cat", "a:1A,3B 'it''s':2 \\\\x:16384", "'b c':4,2C"),
    "tsquery": ("a & b | !c", "( a | b ) & c:*AB <-> 'd e'", "a <3> ( b <-> c )", "!!a"),
    "xml": ("<a b='c'>x &amp; y</a>", "text <b/>", '<?xml version="1.0" standalone="yes"?><a/>', "<!-- c --><a/>"),
}
#: Types that PostgreSQL cannot group, which a view keeps as texts.
UNEQUAL: Final = ("json", "pg_snapshot", "point", "lseg", "box", "path", "polygon", "line", "circle", "tsquery", "xml")
COPY_FORMATS: Final = ("text", "csv", "binary")
VALUE_FORMATS: Final = (Format.TEXT, Format.BINARY)


class Peer:
    """A session at the level of libpq, which shows received bytes."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.raw: PGconn = connection.pgconn
        self.raw.nonblocking = 0

    def run(self, sql: str, extended: bool = False) -> PGresult:
        """Runs a statement by the simple or the extended protocol."""
        command = sql.encode()
        return _good(self.raw.exec_params(command, None) if extended else self.raw.exec_(command))

    def values(self, sql: str, format_: Format, extended: bool = True) -> list[bytes | None]:
        """The values of a result's only column."""
        command = sql.encode()
        done = self.raw.exec_params(command, None, result_format=format_) if extended else self.raw.exec_(command)
        return [done.get_value(row, 0) for row in range(_good(done).ntuples)]

    def insert(self, table: str, values: list[bytes | None], type_: int, format_: Format) -> None:
        """Inserts rows (ordinal, value) with the value as a parameter of a type and format."""
        for ordinal, value in enumerate(values):
            command = f"INSERT INTO {table} VALUES ({ordinal}, $1)".encode()
            _good(self.raw.exec_params(command, [value], [type_], [format_]))

    def copy_out(self, source: str, format_: str, extended: bool) -> bytes:
        """COPY ... TO STDOUT."""
        self.run(f"COPY {source} TO STDOUT (FORMAT {format_})", extended)
        pieces = []
        while (got := self.raw.get_copy_data(0))[0] != -1:
            pieces.append(bytes(got[1]))
        self._end()
        return b"".join(pieces)

    def copy_in(self, table: str, format_: str, data: bytes, extended: bool) -> None:
        """COPY ... FROM STDIN."""
        self.run(f"COPY {table} FROM STDIN (FORMAT {format_})", extended)
        self.raw.put_copy_data(data)
        self.raw.put_copy_end()
        self._end()

    def _end(self) -> None:
        while (done := self.raw.get_result()) is not None:
            _good(done)


def _good(result: PGresult) -> PGresult:
    assert result.status not in (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE), result.error_message.decode()
    return result


@pytest.fixture
def here(sql: psycopg.Connection[Any]) -> Peer:
    peer = Peer(sql)
    peer.run("SET TimeZone = 'Europe/Berlin'")
    return peer


@pytest.fixture
def judge(postgres: Postgres) -> Iterator[Peer]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        peer = Peer(connection)
        peer.run("SET TimeZone = 'Europe/Berlin'")
        yield peer


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_in_every_format_is_postgresqls(kind: str, here: Peer, judge: Peer, running: Millstream) -> None:
    name = "typed_" + "".join(letter if letter.isalnum() else "_" for letter in kind)
    judge.run(f"CREATE TEMPORARY TABLE {name} (n integer, v {kind})")
    literals = [f"'{text.replace(chr(39), chr(39) * 2)}'" for text in TYPES[kind]] + ["NULL"]
    for ordinal, literal in enumerate(literals):
        judge.run(f"INSERT INTO {name} VALUES ({ordinal}, {literal})")
    type_ = judge.run(f"SELECT v FROM {name}").ftype(0)

    here.run(
        f"CREATE TABLE {name} (n integer, v {kind}); CREATE FOREIGN TABLE {name}_s (n integer, v {kind}) SERVER stream"
    )
    kept = f"max(v::text)::{kind} AS v" if kind in UNEQUAL else "v"
    groups = "n" if kind in UNEQUAL else "n, v"
    here.run(f"CREATE VIEW {name}_v AS SELECT n, {kept}, count(*) AS c FROM {name}_s GROUP BY {groups}")

    expected = f"SELECT v FROM {name} ORDER BY n"
    viewed = f"SELECT v FROM {name}_v ORDER BY n"
    for ordinal, literal in enumerate(literals):
        here.run(
            f"INSERT INTO {name} VALUES ({ordinal}, {literal}); INSERT INTO {name}_s VALUES ({ordinal}, {literal})"
        )
    for given in VALUE_FORMATS:
        for taken in VALUE_FORMATS:
            right = judge.values(expected, taken)
            assert here.values(expected, taken) == right
            assert here.values(viewed, taken) == right
        assert here.values(expected, Format.TEXT, extended=False) == judge.values(expected, Format.TEXT, extended=False)
        assert here.values(viewed, Format.TEXT, extended=False) == judge.values(expected, Format.TEXT, extended=False)
        here.run(f"DELETE FROM {name}")
        here.insert(name, judge.values(expected, given), type_, given)
        here.insert(f"{name}_s", judge.values(expected, given), type_, given)

    for format_ in COPY_FORMATS:
        for extended in (False, True):
            data = judge.copy_out(f"(SELECT n, v FROM {name} ORDER BY n)", format_, extended)
            here.run(f"DELETE FROM {name}")
            here.copy_in(name, format_, data, extended)
            here.copy_in(f"{name}_s", format_, data, extended)
            assert here.copy_out(f"(SELECT n, v FROM {name} ORDER BY n)", format_, extended) == data
            assert here.copy_out(f"(SELECT n, v FROM {name}_v ORDER BY n)", format_, extended) == data
            judge.run(f"CREATE TEMPORARY TABLE back (LIKE {name})")
            judge.copy_in("back", format_, here.copy_out(name, format_, extended), extended)
            assert judge.copy_out("(SELECT n, v FROM back ORDER BY n)", format_, extended) == data
            judge.run("DROP TABLE back")


SHAPED: Final[dict[str, tuple[str, ...]]] = {
    "int[][]": ("{{1,2},{3,NULL}}", "{1,2}", "{}", "[0:1]={7,8}", "[2:3][-1:0]={{1,2},{3,4}}", "{{{1}},{{2}}}"),
    "text[][]": ('{{a,"b c"},{NULL,"null"}}', '{{"{",","},{"\\\\",""}}', '{{"\\""}}'),
    "timestamptz[][]": ("{{2024-01-01 12:00+00,NULL}}",),
    "numeric(9,2)[][]": ("{{1.5},{-2}}", "[5:5]={3}"),
    "box[]": ("{(1,1),(0,0);(3,3),(2,2)}", "{}", "{NULL}"),
    "bit(2)[]": ("{01,NULL,11}",),
    "money[]": ('{"$1,000.00",2}',),
    "point[]": ('{"(1,2)",NULL}',),
    "inet[]": ("{10.0.0.1/8,::1}",),
}


@pytest.mark.parametrize("kind", SHAPED)
def test_arrays_of_any_dimensions_in_every_format_are_postgresqls(kind: str, here: Peer, judge: Peer) -> None:
    name = "shaped_" + "".join(letter if letter.isalnum() else "_" for letter in kind)
    literals = [f"'{text}'" for text in SHAPED[kind]] + ["NULL"]
    for peer in (judge, here):
        peer.run(f"CREATE TABLE {name} (n integer, v {kind})")
        for ordinal, literal in enumerate(literals):
            peer.run(f"INSERT INTO {name} VALUES ({ordinal}, {literal})")
    type_, query = judge.run(f"SELECT v FROM {name}").ftype(0), f"SELECT v FROM {name} ORDER BY n"
    assert here.run(query).ftype(0) == type_
    for given in VALUE_FORMATS:
        for taken in VALUE_FORMATS:
            assert here.values(query, taken) == judge.values(query, taken)
        assert here.values(query, Format.TEXT, extended=False) == judge.values(query, Format.TEXT, extended=False)
        echoed = f"SELECT $1::{kind.removesuffix('[]') if '[][]' in kind else kind}".encode()
        for value in judge.values(query, given):
            one, other = (peer.raw.exec_params(echoed, [value], [type_], [given]) for peer in (here, judge))
            assert _good(one).get_value(0, 0) == _good(other).get_value(0, 0)
        here.run(f"DELETE FROM {name}")
        here.insert(name, judge.values(query, given), type_, given)
    for format_ in COPY_FORMATS:
        data = judge.copy_out(f"(SELECT n, v FROM {name} ORDER BY n)", format_, True)
        here.run(f"DELETE FROM {name}")
        here.copy_in(name, format_, data, True)
        assert here.copy_out(f"(SELECT n, v FROM {name} ORDER BY n)", format_, True) == data
    judge.run(f"DROP TABLE {name}")


@pytest.mark.parametrize("relation", ["FOREIGN TABLE", "TABLE"])
def test_columns_of_views_have_the_modifiers_that_postgresql_tells(relation: str, here: Peer, judge: Peer) -> None:
    """An aggregate's result has no declared precision or length, whatever its argument's column has."""
    columns = "a numeric(8,2), b varchar(5), c char(3), d timestamp(2), e interval(3), f bit(4)"
    query = (
        "SELECT a, b, c, array_agg(a) AS aa, array_agg(DISTINCT b) AS ab, array_agg(c) AS ac, array_agg(d) AS ad,"
        " array_agg(e) AS ae, array_agg(f) AS af, max(a) AS ma, min(b) AS mb, max(d) AS md, sum(a) AS sa,"
        " mode() WITHIN GROUP (ORDER BY b) AS mob, percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY a) AS pa,"
        " max(a)::numeric(10,3) AS ca, (max(b) || 'x')::varchar(9) AS cb FROM told GROUP BY a, b, c"
    )
    server = "SERVER stream" if relation == "FOREIGN TABLE" else ""
    here.run(f"CREATE {relation} told ({columns}) {server}; CREATE VIEW telling AS {query}")
    judge.run(f"CREATE TEMPORARY TABLE told ({columns}); CREATE TEMPORARY VIEW telling AS {query}")
    attributes = "SELECT attname, atttypid, atttypmod FROM pg_attribute WHERE attrelid = 'telling'::regclass"
    found = []
    for peer in (here, judge):
        result = peer.run("SELECT * FROM telling")
        announced = [(result.fname(at), result.ftype(at), result.fmod(at)) for at in range(result.nfields)]
        found.append((announced, peer.connection.execute(f"{attributes} ORDER BY attnum".encode()).fetchall()))
    assert found[0] == found[1]
    here.run(f"DROP {relation} told CASCADE")


def test_equal_intervals_are_one_group(here: Peer, judge: Peer) -> None:
    """A month, thirty days and 720 hours are equal; sums and means add months, days and time separately.

    Which of a group's equal intervals is shown as its key, or as the minimum, is undefined: PostgreSQL shows the first
    one.
    """
    rows = [
        "(0, NULL)",
        "(1, '1 mon')",
        "(2, '30 days')",
        "(3, '720:00:00')",
        "(4, '31 days')",
        "(5, '-1 year -3 days 00:00:00.5')",
        "(6, '29 days 24:00:00')",
    ]
    query = (
        "SELECT span, count(*) AS n, sum(id) AS ids, array_agg(span) AS spans, sum(span) AS total FROM {} GROUP BY span"
    )
    aggregates = "SELECT count(DISTINCT span) AS n, min(span) AS low, max(span) AS high, avg(span) AS mean FROM {}"
    judge.run("CREATE TEMPORARY TABLE spans (id integer, span interval)")
    here.run("CREATE FOREIGN TABLE spans (id integer, span interval) SERVER stream")
    here.run(f"CREATE VIEW by_span AS {query.format('spans')}")
    here.run(f"CREATE VIEW all_spans AS {aggregates.format('spans')}")
    for row in rows:
        judge.run(f"INSERT INTO spans VALUES {row}")
        here.run(f"INSERT INTO spans VALUES {row}")
        ordered = "SELECT {} FROM ({}) AS q ORDER BY ids"
        for column in ("extract(epoch FROM span)", "n", "ids", "spans", "total"):
            expected = judge.values(ordered.format(column, query.format("spans")), Format.TEXT)
            assert here.values(ordered.format(column, "SELECT * FROM by_span"), Format.TEXT) == expected, column
        for column in ("n", "extract(epoch FROM low)", "extract(epoch FROM high)", "mean"):
            expected = judge.values(f"SELECT {column} FROM ({aggregates.format('spans')}) AS q", Format.TEXT)
            assert here.values(f"SELECT {column} FROM all_spans", Format.TEXT) == expected, column
    assert here.values("SELECT n FROM by_span WHERE span = '30 days'", Format.TEXT) == [b"4"]
    assert here.values("SELECT n FROM by_span WHERE span = interval '29 days 24 hours'", Format.TEXT) == [b"4"]
    with pytest.raises(AssertionError, match="interval out of range"):
        here.run("INSERT INTO spans VALUES (7, '3000000 hours')")


@pytest.mark.parametrize("engine", ENGINES)
def test_intervals_are_maintained_and_kept(engine: str) -> None:
    """Stored intervals are there after a restart; the embedded engine maintains views that read them."""
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 1}
    with Millstream(settings=settings) as server:
        with server.connect() as client:
            client.execute("CREATE FOREIGN TABLE spans (id integer, span interval) SERVER stream")
            client.execute("CREATE VIEW by_span AS SELECT span, array_agg(span) AS spans FROM spans GROUP BY span")
            client.execute("CREATE VIEW by_id AS SELECT id % 2 AS k, count(*) AS n FROM spans GROUP BY id % 2")
            client.execute("INSERT INTO spans VALUES (1, '1 mon'), (2, NULL), (3, '1 mon'), (4, '2 days 00:00:01')")
            behind = "SELECT sum(rows_behind) FROM millstream.views"
            wait_until(lambda: client.execute(behind).fetchone() == (0,), 120, "maintenance")
        server.restart()
        with server.connect() as client:
            client.execute("INSERT INTO spans VALUES (5, '2 days 00:00:01')")
            found = client.execute("SELECT span::text, spans::text FROM by_span AS b ORDER BY b.span").fetchall()
            assert found == [
                ("2 days 00:00:01", '{"2 days 00:00:01","2 days 00:00:01"}'),
                ("1 mon", '{"1 mon","1 mon"}'),
                (None, "{NULL}"),
            ]
            assert client.execute("SELECT n FROM by_id ORDER BY k").fetchall() == [(2,), (3,)]
