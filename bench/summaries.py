"""What a PostgreSQL user keeps by hand in place of a continuous view: a summary table and a trigger that adds to it.

The trigger runs once a statement, over its transition table (REFERENCING NEW TABLE), so that a COPY's rows are grouped
once and its own transaction makes them and the summary durable together. Owns: such summaries of ``bench.freshness``'s
views, which need nothing but sums by key, and the statements that make one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Summary(Struct, frozen=True):
    """Sums by key of lineitem's rows that meet a condition, in a table ``fresh``."""

    keys: Mapping[str, str]  # the type of each
    sums: Mapping[str, str]  # the aggregate over the rows that arrived, by the summary's column
    read: str
    condition: str = "true"

    def statements(self) -> tuple[str, ...]:
        """What makes the summary and keeps it, on an empty lineitem."""
        keys = ", ".join(self.keys)
        columns = ", ".join(f"{name} {kind}" for name, kind in self.keys.items())
        kinds = ", ".join(f"{name} numeric NOT NULL" for name in self.sums)
        added = ", ".join(f"{name} = kept.{name} + excluded.{name}" for name in self.sums)
        return (
            "DROP TABLE IF EXISTS fresh",
            f"CREATE TABLE fresh ({columns}, {kinds}, PRIMARY KEY ({keys}))",
            f"""CREATE OR REPLACE FUNCTION summarise() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO fresh AS kept SELECT {keys}, {", ".join(self.sums.values())}
                FROM (SELECT 1 AS one, * FROM arrived) AS arrived WHERE {self.condition} GROUP BY {keys}
                ON CONFLICT ({keys}) DO UPDATE SET {added};
                RETURN NULL;
            END $$""",
            """CREATE TRIGGER summarise AFTER INSERT ON lineitem REFERENCING NEW TABLE AS arrived
            FOR EACH STATEMENT EXECUTE FUNCTION summarise()""",
        )


_BY_ORDER: Final = Summary({"l_orderkey": "bigint"}, {"rows": "count(*)", "qty": "sum(l_quantity)"}, "TABLE fresh")

#: By the names of ``bench.freshness``'s cases.
SUMMARIES: Final = {
    "q1": Summary(
        {"l_returnflag": "char(1)", "l_linestatus": "char(1)"},
        {
            "sum_qty": "sum(l_quantity)",
            "sum_base_price": "sum(l_extendedprice)",
            "sum_disc_price": "sum(l_extendedprice * (1 - l_discount))",
            "sum_charge": "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax))",
            "sum_disc": "sum(l_discount)",
            "count_order": "count(*)",
        },
        "SELECT l_returnflag, l_linestatus, sum_qty, sum_base_price, sum_disc_price, sum_charge,"
        " sum_qty / count_order AS avg_qty, sum_base_price / count_order AS avg_price,"
        " sum_disc / count_order AS avg_disc, count_order FROM fresh",
        "l_shipdate <= date '1998-12-01' - interval '90' day",
    ),
    "q6": Summary(
        {"one": "integer"},
        {"revenue": "sum(l_extendedprice * l_discount)"},
        "SELECT revenue FROM fresh",
        "l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01'"
        " AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
    "by_order": _BY_ORDER,
    "by_order, one key": Summary(_BY_ORDER.keys, _BY_ORDER.sums, "SELECT * FROM fresh WHERE l_orderkey = 7"),
}
