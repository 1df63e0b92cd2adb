"""Clients with encodings other than UTF8: statements, parameters, results, names, errors and COPY, compared byte for
byte with a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus

from catalog.values.encodings import CODECS, PLAIN, UTF8
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_SAMPLES: Final = {
    "EUC_JP": "日本語テスト",
    "EUC_JIS_2004": "日本語",
    "SJIS": "表示ソ能",  # with backslashes as second bytes
    "EUC_CN": "中文",
    "GBK": "中文測試",
    "GB18030": "中文測試€",
    "BIG5": "中文許功蓋",
    "EUC_KR": "한국어",
    "UHC": "한국어똠",
}
_ENCODINGS: Final = [name for name in CODECS if name not in (UTF8, "SQL_ASCII")]


@pytest.fixture(scope="module")
def servers(running: Millstream, postgres: Postgres) -> Iterator[tuple[str, str]]:
    """Connection strings of both."""
    found = running.dsn(), postgres.dsn()
    for dsn in found:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA ce")
    yield found
    for dsn in found:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA ce CASCADE")


@pytest.mark.parametrize("name", sample(_ENCODINGS, ("LATIN1", "WIN1252", "EUC_JP", "SJIS")))
def test_a_client_gets_its_own_characters(name: str, servers: tuple[str, str]) -> None:
    found, wanted = (_spoken(dsn, name) for dsn in servers)
    assert found == wanted


def _spoken(dsn: str, name: str) -> list[object]:
    """The results of statements in an encoding that is set when the client connects."""
    text = _text(name)
    with psycopg.connect(f"{dsn} client_encoding={name}", autocommit=True) as connection:
        link = connection.pgconn
        statements = [
            b"SET search_path = ce",
            b"SHOW client_encoding",
            b"SELECT '" + text + b"' AS \"" + text[:10] + b"\", length('" + text + b"')",
            b'CREATE TABLE t (a text, "' + text[:2] + b'" int)',
            b"INSERT INTO t VALUES ('" + text + b"', 1), (NULL, 2), ('plain', 3) RETURNING *",
            b"SELECT * FROM t ORDER BY 2",
            b"SELECT nope_" + text[:2] + b" FROM t",
            b"SELECT array_agg(a), row(a) FROM t WHERE a IS NOT NULL GROUP BY a ORDER BY 1",
            b"SELECT '\xff\x27",
            b"SELECT E'\\u05d0'" if name not in ("WIN1255", "ISO_8859_8", "GB18030") else b"SELECT 1",
            b"SELECT 'plain'",
        ]
        found = [_told(link, link.exec_(each)) for each in statements * 2]
        found += [
            _told(link, link.exec_params(b"SELECT $1::text, $2::bytea", [text, text], param_formats=[0, 1])),
            _told(link, link.exec_params(b"SELECT $1::text, $2::int", [text, b"\0\0\0\xff"], None, [1, 1], 1)),
            _told(link, link.exec_params(b"SELECT a FROM t ORDER BY 1", [], result_format=1)),
        ]
        if name in PLAIN:
            found.append(_told(link, link.exec_(b"COPY t TO STDOUT")))
            assert link.exec_(b"COPY t FROM STDIN").status == ExecStatus.COPY_IN
            link.put_copy_data(text + b"\t7\n")
            link.put_copy_end()
            while (result := link.get_result()) is not None:
                found.append(_told(link, result))
        found.append(_told(link, link.exec_(b"SET client_encoding = 'UTF8'")))
        found.append(_told(link, link.exec_(b"SELECT * FROM t ORDER BY 2")))
        link.exec_(b"DROP TABLE t")
    return found


def _text(name: str) -> bytes:
    """Characters of an encoding: of the one-byte characters, all letters and signs."""
    codec = CODECS[name]
    text = _SAMPLES.get(name) or "".join(bytes([byte]).decode(codec, "ignore") for byte in range(0xA0, 0x100))
    return text.encode(codec)


def _told(link: Any, result: Any) -> object:
    """Columns and rows as bytes, or the error."""
    if result.status == ExecStatus.FATAL_ERROR:
        return result.error_field(DiagnosticField.SQLSTATE), result.error_field(DiagnosticField.MESSAGE_PRIMARY)
    if result.status == ExecStatus.COPY_OUT:
        data = []
        while (piece := link.get_copy_data(0))[0] > 0:
            data.append(bytes(piece[1]))
        while link.get_result() is not None:
            pass
        return b"".join(data)
    rows = [[result.get_value(row, place) for place in range(result.nfields)] for row in range(result.ntuples)]
    return [result.fname(place) for place in range(result.nfields)], rows


@pytest.mark.parametrize("output", ["escape", "hex"])
def test_bytea_is_shown_as_the_session_asks(output: str, servers: tuple[str, str]) -> None:
    found, wanted = (_octets(dsn, output) for dsn in servers)
    assert found == wanted


def _octets(dsn: str, output: str) -> list[object]:
    with psycopg.connect(f"{dsn} options='-c bytea_output={output}'", autocommit=True) as connection:
        link = connection.pgconn
        texts = [
            r"SELECT '\x00ff415c7f20277e'::bytea, ''::bytea, NULL::bytea, ARRAY['\x00', 'a\\b'::bytea]",
            r"SELECT b FROM (VALUES ('\x0041'::bytea), (NULL), (''), ('\x5c5c')) v (b) ORDER BY 1",
            r"SELECT encode('\x0041', 'hex'), md5('\x41'::bytea)",
            r"COPY (SELECT '\x005c41'::bytea) TO STDOUT",
            "SHOW bytea_output",
            "SET bytea_output = hex",
            r"SELECT '\x00ff'::bytea",
            "SET bytea_output = escape",
            r"SELECT '\x00ff'::bytea",
            "SET bytea_output = none",
        ]
        return [_told(link, link.exec_(each.encode())) for each in texts * 2]


def test_strings_have_escapes_where_the_session_asks_for_them(servers: tuple[str, str]) -> None:
    found, wanted = map(_escapes, servers)
    assert found == wanted


def _escapes(dsn: str) -> list[object]:
    said: list[object] = []
    with psycopg.connect(f"{dsn} options='-c standard_conforming_strings=off'", autocommit=True) as connection:
        connection.add_notice_handler(
            lambda item: said.append((item.sqlstate, item.message_primary, item.message_hint))
        )
        link = connection.pgconn
        texts = [
            r"SELECT 'a\nb', 'c''d', 'x\\y', E'a\nb', length('\\')",
            r"SELECT 'it\'s', 'plain', 'a\q\x41\101\u0041'",
            r"SELECT U&'d\0061'",
            "SELECT 'a\\nb'\n  'c\\td', nope",
            r"""SELECT $$a\nb$$, "a\nb" FROM (SELECT 1 AS "a\nb") x""",
            r"SELECT 'a\n' FROM nowhere",
            "SHOW standard_conforming_strings",
            "SET escape_string_warning = off",
            r"SELECT 'a\tb'",
            "SET standard_conforming_strings = on",
            r"SELECT 'a\tb'",
        ]
        open_ended = link.exec_(rb"SELECT 'a\'")
        said.append(open_ended.error_field(DiagnosticField.SQLSTATE))
        for text in texts:
            said.append(_placed(link, link.exec_(text.encode())))
            said.append(_placed(link, link.exec_params(text.encode(), [])))
    return said


def _placed(link: Any, result: Any) -> object:
    """Columns and rows, or the error with its position."""
    if result.status != ExecStatus.FATAL_ERROR:
        return _told(link, result)
    return _told(link, result), result.error_field(DiagnosticField.STATEMENT_POSITION)
