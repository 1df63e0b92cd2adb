"""TPC-H for the tests: data generated when needed, the schema in PostgreSQL's SQL, and the thesis' queries.

Owns: a folder of generated CSV and Parquet, DDL with a chosen set of tables as streams, and the queries of the thesis'
section 4.3.2 (1, 3, 6, 15, 20; without ORDER BY and LIMIT, as there) with the benchmark's validation parameters.
``WIDE`` holds the same queries with looser parameters, because the standard ones select almost no rows of a hundredth
of the data, and with ORDER BY and LIMIT where the benchmark has them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal

from tests.rig.generated import generated

TABLES: Final[dict[str, str]] = {
    "region": "r_regionkey integer PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152)",
    "nation": "n_nationkey integer PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey integer NOT NULL,"
    " n_comment varchar(152)",
    "supplier": "s_suppkey integer PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL,"
    " s_nationkey integer NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL,"
    " s_comment varchar(101) NOT NULL",
    "customer": "c_custkey integer PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL,"
    " c_nationkey integer NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL,"
    " c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL",
    "part": "p_partkey integer PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,"
    " p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL, p_container char(10) NOT NULL,"
    " p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL",
    "partsupp": "ps_partkey integer NOT NULL, ps_suppkey integer NOT NULL, ps_availqty integer NOT NULL,"
    " ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "orders": "o_orderkey bigint PRIMARY KEY, o_custkey integer NOT NULL, o_orderstatus char(1) NOT NULL,"
    " o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL,"
    " o_clerk char(15) NOT NULL, o_shippriority integer NOT NULL, o_comment varchar(79) NOT NULL",
    "lineitem": "l_orderkey bigint, l_partkey integer, l_suppkey integer, l_linenumber integer,"
    " l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2),"
    " l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,"
    " l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44)",
}

QUERIES: Final[dict[str, str]] = {
    "q1": """
select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
    avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
from lineitem
where l_shipdate <= date '1998-12-01' - interval '90' day
group by l_returnflag, l_linestatus""",
    "q3": """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
    and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority""",
    "q6": """
select sum(l_extendedprice * l_discount) as revenue
from lineitem
where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
    and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24""",
    "q15": """
with revenue (supplier_no, total_revenue) as (
    select l_suppkey, sum(l_extendedprice * (1 - l_discount))
    from lineitem
    where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month
    group by l_suppkey
)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from supplier, revenue
where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)""",
    "q20": """
select s_name, s_address
from supplier, nation
where s_suppkey in (
        select ps_suppkey
        from partsupp
        where ps_partkey in (select p_partkey from part where p_name like 'forest%')
            and ps_availqty > (
                select 0.5 * sum(l_quantity)
                from lineitem
                where l_partkey = ps_partkey and l_suppkey = ps_suppkey
                    and l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
            )
    )
    and s_nationkey = n_nationkey and n_name = 'CANADA'""",
}

WIDE: Final[dict[str, str]] = {
    "q3_wide": QUERIES["q3"].replace("c_mktsegment = 'BUILDING' and ", "")
    + "\norder by revenue desc, o_orderdate, l_orderkey\nlimit 10",
    "q15_wide": QUERIES["q15"].replace("interval '3' month", "interval '3' year"),
    "q20_wide": QUERIES["q20"].replace("forest%", "%o%").replace(" and n_name = 'CANADA'", " and n_nationkey < 12"),
    "by_order": """
select l_orderkey, count(*), sum(l_quantity) as quantity, max(l_shipdate)
from lineitem
group by l_orderkey""",
}


def create(streams: Collection[str] = ("lineitem",), only: Collection[str] = tuple(TABLES)) -> Iterator[str]:
    """CREATE statements, with ``streams`` as streams (which have no constraints) and the others as tables."""
    for name, columns in TABLES.items():
        if name not in only:
            continue
        if name in streams:
            bare = columns.replace(" PRIMARY KEY", "").replace(" NOT NULL", "")
            yield f"CREATE FOREIGN TABLE {name} ({bare}) SERVER stream"
        else:
            yield f"CREATE TABLE {name} ({columns})"


#: The largest scale factor at which a table takes less time than the generator's start.
SMALL: Final = 0.01


class Tpch:
    """Generated data in one folder, by scale factor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def csv(self, scale: float, table: str) -> Path:
        """One table as CSV with a header line."""
        folder = self._folder / f"sf{scale:g}"
        options = (f"--scale-factor={scale:g}", f"--output-dir={folder}", "--overwrite")
        return generated(folder, lambda: _generate("csv", *options)) / f"{table}.csv"

    def lines(self, scale: float, table: str) -> list[bytes]:
        """One table's CSV lines, each with its newline, without the header."""
        with self.csv(scale, table).open("rb") as file:
            return file.readlines()[1:]

    def parts(self, scale: float, table: str, count: int, kind: Literal["csv", "parquet"]) -> list[Path]:
        """One table as a number of files. Of little data, all tables are generated at once: the program takes longer to
        start."""
        folder = self._folder / f"sf{scale:g}-{kind}-{count}"
        wanted = "" if scale <= SMALL else table
        options = (f"--scale-factor={scale:g}", f"--parts={count}", *((f"--tables={table}",) if wanted else ()))
        generated(folder, lambda: _generate(kind, *options, f"--output-dir={folder}", "--overwrite"), wanted)
        return sorted((folder / table).glob(f"*.{kind}"), key=lambda path: int(path.stem.rpartition(".")[2]))


def _generate(*arguments: str) -> None:
    program = Path(sys.executable).parent / "tpcgen-cli"
    subprocess.run([str(program), "tpch", *arguments], check=True, capture_output=True)
