"""extra_float_digits below 1: floats as PostgreSQL shows them, and refusals."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow


def texts(connection: psycopg.Connection[tuple[object, ...]], query: str) -> list[bytes | None]:
    result = connection.pgconn.exec_params(query.encode(), [])
    return [result.get_value(0, place) for place in range(result.nfields)]


def test_digits_are_of_the_session_that_asks(running: Millstream) -> None:
    query = "SELECT 0.1::float8 + 0.2::float8, 3.14159274::float4, 'NaN'::float8, -1e20::float8"
    with running.connect() as short, running.connect() as usual:
        short.execute("SET extra_float_digits = 0")
        for _ in range(2):
            assert texts(short, query) == [b"0.3", b"3.14159", b"NaN", b"-1e+20"]
            assert texts(usual, query) == [b"0.30000000000000004", b"3.1415927", b"NaN", b"-1e+20"]


def test_a_text_within_a_query_is_refused(running: Millstream) -> None:
    with running.connect() as connection:
        connection.execute("SET extra_float_digits = 0")
        for shown in ("1.5::float8::text", "1.5::float4 || 'x'", "to_json(1.5::float8)", "format('%s', 1.5::float8)"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="a float as text within a query"):
                connection.execute(f"SELECT {shown}")
        connection.execute("SET extra_float_digits = 2")
        assert connection.execute("SELECT 1.5::float8::text").fetchone() == ("1.5",)
