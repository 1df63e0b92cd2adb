"""Variances of doubles that are milliseconds since 1970, in views of streams, batch by batch."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

pytestmark = pytest.mark.slow


def test_batches_of_many_rows_lose_no_digits(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE far_rows (o float8, x float8) SERVER stream")
    sql.execute("CREATE VIEW far_spread AS SELECT o, var_samp(x) AS v, stddev_pop(x) AS s FROM far_rows GROUP BY o")
    for third in range(3):
        sql.execute(
            "INSERT INTO far_rows SELECT o, o + i FROM (VALUES (0::float8), (1.7e9), (1.7e12), (1e13)) w(o), "
            f"generate_series(1, 6000) i WHERE i % 3 = {third}"
        )
    found = sql.execute("SELECT o, v, s FROM far_spread ORDER BY o").fetchall()
    # For 1 to n: n (n + 1) / 12, and the root of (n * n - 1) / 12.
    wanted = [pytest.approx(6000 * 6001 / 12, rel=1e-9), pytest.approx(((6000**2 - 1) / 12) ** 0.5, rel=1e-9)]
    assert [[v, s] for _, v, s in found] == [wanted] * 4
