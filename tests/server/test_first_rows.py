"""First rows of streams if several rows tie by order or key: a whole row is shown, not parts of several."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

Client = psycopg.Connection[Any]

_ORDERS = {
    "limit": "SELECT * FROM first_ties ORDER BY a LIMIT 1",
    "each": "SELECT DISTINCT ON (a) * FROM first_ties ORDER BY a",
}


@pytest.mark.parametrize("name", _ORDERS)
@pytest.mark.parametrize("condition", ["true", "x.a < 3", "y.a < 3 AND x.c > 0"])
def test_a_query_of_with_gives_the_same_rows_wherever_it_is_read(sql: Client, name: str, condition: str) -> None:
    sql.execute("CREATE FOREIGN TABLE first_ties (a int, b int, c int) SERVER stream")
    query = f"WITH f AS ({_ORDERS[name]}) SELECT x.b, y.c FROM f x JOIN f y ON x.a = y.a WHERE {condition}"
    sql.execute(f"CREATE VIEW first_two AS {query}".encode())
    sql.execute("INSERT INTO first_ties VALUES (1, 5, 9), (1, 7, 3)")
    assert sql.execute("SELECT * FROM first_two").fetchall() in ([(5, 9)], [(7, 3)])
    sql.execute("DROP FOREIGN TABLE first_ties CASCADE")


def test_a_key_is_that_of_its_first_row(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE first_spans (span interval, at int) SERVER stream")
    sql.execute("CREATE VIEW first_of_span AS SELECT DISTINCT ON (span) * FROM first_spans ORDER BY span, at DESC")
    sql.execute("INSERT INTO first_spans VALUES ('1 mon', 1)")
    sql.execute("INSERT INTO first_spans VALUES ('30 days', 2)")
    assert sql.execute("SELECT span::text, at FROM first_of_span").fetchall() == [("30 days", 2)]
    sql.execute("DROP FOREIGN TABLE first_spans CASCADE")
