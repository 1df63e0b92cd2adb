"""The law on the 22 queries of TPC-H as views over eight tables, all of which change.

Rows of each relation are updated in the columns that the queries use, go, and come back later; orders come and go with
their lines. After each change some views are read, and twice all of them; the judge evaluates the benchmark's text from
scratch. With ``--whole`` the tables have all orders, there are more changes, each method is forced, and the server is
killed in between.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pytest

from tests.rig.benchmarks import FOLDER
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES, Tpch

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]

SCALE: Final = 0.01
QUERIES: Final = {f"q{number}": (FOLDER / "tpch" / f"q{number}.sql").read_text("utf-8") for number in range(1, 23)}
METHODS: Final = ("auto", "incremental", "higher_order", "delta", "recompute")


def _turned(column: str, values: Sequence[str]) -> str:
    """Each of some values becomes the next one."""
    cases = " ".join(f"WHEN '{one}' THEN '{two}'" for one, two in zip(values, [*values[1:], values[0]], strict=True))
    return f"{column} = CASE {column} {cases} ELSE {column} END"


#: By relation, the number by which rows are chosen, and what changes of them.
UPDATES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "region": ("r_regionkey", (_turned("r_name", ("EUROPE", "ASIA", "MIDDLE EAST", "AMERICA")), "r_comment = NULL")),
    "nation": (
        "n_nationkey",
        (
            "n_regionkey = (n_regionkey + 1) % 5",
            _turned("n_name", ("FRANCE", "GERMANY", "SAUDI ARABIA", "CANADA", "BRAZIL")),
        ),
    ),
    "supplier": (
        "s_suppkey",
        (
            "s_nationkey = (s_nationkey + 1) % 25",
            "s_acctbal = s_acctbal - 1, s_name = upper(s_name), s_phone = '99'",
            "s_comment = 'Customer said Complaints'",
        ),
    ),
    "customer": (
        "c_custkey",
        (
            "c_nationkey = (c_nationkey + 3) % 25, c_phone = '13-1'",
            _turned("c_mktsegment", ("BUILDING", "MACHINERY", "AUTOMOBILE")),
            "c_acctbal = c_acctbal + 100, c_address = 'moved'",
        ),
    ),
    "part": (
        "p_partkey",
        (
            "p_size = 1 + p_size % 50",
            "p_type = 'STANDARD POLISHED BRASS', p_size = 15",
            "p_brand = 'Brand#23', p_container = 'MED BOX'",
            "p_name = 'forest green', p_type = 'ECONOMY ANODIZED STEEL'",
        ),
    ),
    "partsupp": (
        "ps_partkey",
        ("ps_supplycost = ps_supplycost / 2", "ps_availqty = 9999", "ps_supplycost = ps_supplycost + 1.5"),
    ),
    "orders": (
        "o_orderkey",
        (
            "o_orderdate = o_orderdate + 31",
            "o_custkey = o_custkey + 1, o_orderstatus = 'F'",
            "o_comment = 'special packages requests', o_orderpriority = '1-URGENT'",
        ),
    ),
    "lineitem": (
        "l_orderkey",
        (
            "l_quantity = l_quantity + 20, l_extendedprice = l_extendedprice * 1.5",
            "l_shipdate = l_shipdate + 20, l_commitdate = l_commitdate - 40, l_receiptdate = l_receiptdate + 5",
            "l_discount = 0.06, l_tax = 0, l_returnflag = 'R'",
            "l_shipmode = 'AIR', l_shipinstruct = 'DELIVER IN PERSON', l_suppkey = 1 + l_suppkey % 90",
        ),
    ),
}
#: Relations of a few rows, of which one changes at a time.
SMALL: Final = ("region", "nation")
#: What of the others changes: a row or some, or a share.
SHARES: Final = (3, 17, 500)


@pytest.mark.parametrize("method", sample(METHODS, ("incremental",)))
def test_views_equal_the_benchmarks_queries_whatever_changes(
    method: str, postgres: Postgres, tpch: Tpch, whole: bool
) -> None:
    source = random.Random(f"tpch {method}")
    settings = {"spark_enabled": False}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        held = _prepare(mirror, tpch, method, every=1 if whole else 5)
        changes = [*_changes(source, 4 if whole else 1), *held]
        source.shuffle(changes)
        for number, change in enumerate(changes):
            for part in change:
                if isinstance(part, str):
                    mirror.both(part)
                else:
                    mirror.copy(*part)
            mirror.check(*source.sample(list(QUERIES), 8 if whole else 2))
            if number == len(changes) // 2:
                if whole:
                    mirror.restart(crash=True)
                mirror.check()
        for table in TABLES:
            mirror.both(_back(table))
        mirror.check()
        assert sum(bool(mirror.judge.execute(query.encode()).fetchone()) for query in QUERIES.values()) > 15


#: Statements for both, and rows of a table, that make one change.
Change = Sequence[str | tuple[str, bytes]]


def _prepare(mirror: Mirror, tpch: Tpch, method: str, every: int) -> list[Change]:
    """Loads the tables but for some orders with their lines, which come later."""
    later: dict[int, dict[str, list[bytes]]] = {}
    for name, columns in TABLES.items():
        lines = tpch.lines(SCALE, name)
        mirror.table(name, columns)
        mirror.table(f"{name}_gone", columns.partition(", PRIMARY KEY (")[0].replace(" PRIMARY KEY", ""))
        if name in ("orders", "lineitem"):
            kept = []
            for line in lines:
                order = int(line.partition(b",")[0]) // 32 * 8 + int(line.partition(b",")[0]) % 32  # TPC-H 4.2.3
                if order % every:
                    continue
                if order // every % 50 < 3:
                    later.setdefault(order // every % 50, {}).setdefault(name, []).append(line)
                else:
                    kept.append(line)
            lines = kept
        mirror.copy(name, b"".join(lines))
    for name, query in QUERIES.items():
        mirror.view(name, query, options=f"WITH (maintained, method = '{method}')")
    mirror.judge.execute("CREATE INDEX ON lineitem (l_partkey, l_suppkey); CREATE INDEX ON lineitem (l_orderkey)")
    mirror.judge.execute("ANALYZE")
    return [[(name, b"".join(rows)) for name, rows in parts.items()] for parts in later.values()]


def _changes(source: random.Random, rounds: int) -> Iterator[Change]:
    """Updates and deletions of each relation, and rows that come back."""
    for table, (key, updates) in UPDATES.items():
        for _ in range(rounds):
            yield [f"UPDATE {table} SET {source.choice(updates)} WHERE {_chosen(source, table, key)}"]
            yield [
                _back(table),
                f"WITH gone AS (DELETE FROM {table} WHERE {_chosen(source, table, key)} RETURNING *)"
                f" INSERT INTO {table}_gone SELECT * FROM gone",
            ]
            yield [_back(table)]
    for _ in range(rounds):
        which = f"% 97 = {source.randrange(97)}"
        yield [
            "BEGIN",
            f"DELETE FROM lineitem WHERE l_orderkey {which}",
            f"DELETE FROM orders WHERE o_orderkey {which}",
            "COMMIT",
        ]


def _back(table: str) -> str:
    """The rows that have gone come back."""
    return f"WITH back AS (DELETE FROM {table}_gone RETURNING *) INSERT INTO {table} SELECT * FROM back"


def _chosen(source: random.Random, table: str, key: str) -> str:
    if table in SMALL:
        return f"{key} = {source.randrange(5)}"
    divisor = source.choice(SHARES)
    return f"{key} % {divisor} = {source.randrange(divisor)}"
