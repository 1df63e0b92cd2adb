"""Nexmark in Flink SQL: streaming mode, a mini cluster with two slots, CSV files as sources, results dropped.

The queries are those of tests/sql/nexmark in the form that users of Flink write: windows are table functions over event
time (TUMBLE, HOP, SESSION), and the settings are those of Flink's own Nexmark (mini-batches, split DISTINCT
aggregates), with state on the heap and no checkpoints. The watermark is a day behind, since the source reads files in
any order and no event may be late: windows close at the end of the input. Times have milliseconds, Flink's precision of
event time. Run by ``bench.nexmark_peers`` in an environment with apache-flink.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

RELATIONS: Final = {
    "person": "id BIGINT, name STRING, email STRING, credit_card STRING, city STRING, state STRING,"
    " date_time TIMESTAMP(3), extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,"
    " date_time TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3),"
    " extra STRING",
}
WATERMARK: Final = "WATERMARK FOR date_time AS date_time - INTERVAL '1' DAY"
SETTINGS: Final = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "rest.address": "127.0.0.1",
    "execution.runtime-mode": "STREAMING",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}

_RANGES: Final = {"low": "price < 10000", "middle": "price >= 10000 AND price < 1000000", "high": "price >= 1000000"}


def _statistics(counted: str, names: str) -> str:
    """A count of all, and one for each range of prices."""
    ranges = [f"COUNT({counted}) FILTER (WHERE {where}) AS {name}_{names}" for name, where in _RANGES.items()]
    return ", ".join((f"COUNT({counted}) AS {names}", *ranges))


_DAY: Final = "DATE_FORMAT(date_time, 'yyyy-MM-dd')"
_ALL_STATISTICS: Final = ", ".join(
    (_statistics("*", "bids"), _statistics("DISTINCT bidder", "bidders"), _statistics("DISTINCT auction", "auctions"))
)
_TEN_SECONDS: Final = "DESCRIPTOR(date_time), INTERVAL '10' SECOND"
_BIDS: Final = "auction, bidder, price, channel, url, date_time, extra"
_WHILE_OPEN: Final = "FROM auction a JOIN bid b ON b.auction = a.id WHERE b.date_time BETWEEN a.date_time AND a.expires"
_COUNTED: Final = (
    "SELECT auction, window_start, window_end, COUNT(*) AS bids"
    " FROM HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
    " GROUP BY auction, window_start, window_end"
)
#: By the name of a file in tests/sql/nexmark.
QUERIES: Final = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON p.id = a.seller"
    " WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    "q4": "SELECT category, AVG(final) AS average FROM (SELECT a.id, a.category, MAX(b.price) AS final"
    f" {_WHILE_OPEN} GROUP BY a.id, a.category) GROUP BY category",
    "q5": f"SELECT c.window_start, c.auction, c.bids FROM ({_COUNTED}) c JOIN (SELECT window_start, window_end,"
    f" MAX(bids) AS most FROM ({_COUNTED}) GROUP BY window_start, window_end) m"
    " ON m.window_start = c.window_start AND m.window_end = c.window_end WHERE c.bids = m.most",
    "q7": "SELECT b.auction, b.price, b.bidder, b.date_time, m.starts FROM bid b JOIN (SELECT window_start AS starts,"
    f" window_end AS ends, MAX(price) AS price FROM TUMBLE(TABLE bid, {_TEN_SECONDS}) GROUP BY window_start,"
    " window_end) m ON m.price = b.price AND b.date_time >= m.starts AND b.date_time < m.ends",
    "q8": "SELECT p.id, p.name, p.window_start FROM (SELECT id, name, window_start, window_end"
    f" FROM TUMBLE(TABLE person, {_TEN_SECONDS}) GROUP BY id, name, window_start, window_end) p"
    f" JOIN (SELECT seller, window_start, window_end FROM TUMBLE(TABLE auction, {_TEN_SECONDS})"
    " GROUP BY seller, window_start, window_end) a"
    " ON a.seller = p.id AND a.window_start = p.window_start AND a.window_end = p.window_end",
    "q9": "SELECT * FROM (SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time, ROW_NUMBER() OVER"
    " (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS place"
    f" {_WHILE_OPEN}) WHERE place = 1",
    "q10": f"SELECT auction, bidder, price, date_time, extra, {_DAY} AS dated,"
    " DATE_FORMAT(date_time, 'HH:mm') AS timed FROM bid",
    "q11": "SELECT bidder, COUNT(*) AS bids, window_start, window_end"
    f" FROM SESSION(TABLE bid PARTITION BY bidder, {_TEN_SECONDS}) GROUP BY bidder, window_start, window_end",
    "q12": f"SELECT bidder, window_start, COUNT(*) AS bids FROM TUMBLE(TABLE bid, {_TEN_SECONDS})"
    " GROUP BY bidder, window_start, window_end",
    "q13": "SELECT b.auction, b.bidder, b.price, b.date_time, s.text FROM bid b JOIN side s"
    " ON s.number = MOD(b.auction, 100)",
    "q14": "SELECT auction, bidder, 0.908 * price AS price, CASE WHEN HOUR(date_time) BETWEEN 8 AND 18 THEN 'day'"
    " WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'night' ELSE 'between' END AS part, date_time, extra,"
    " REGEXP_COUNT(extra, 'c') AS letters FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
    "q15": f"SELECT {_DAY} AS dated, {_ALL_STATISTICS} FROM bid GROUP BY {_DAY}",
    "q16": f"SELECT channel, {_DAY} AS dated, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS timed, {_ALL_STATISTICS}"
    f" FROM bid GROUP BY channel, {_DAY}",
    "q17": f"SELECT auction, {_DAY} AS dated, {_statistics('*', 'bids')}, MIN(price) AS least, MAX(price) AS most,"
    f" AVG(price) AS average, SUM(price) AS total FROM bid GROUP BY auction, {_DAY}",
    "q18": f"SELECT {_BIDS} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction"
    " ORDER BY date_time DESC, price DESC) AS place FROM bid) WHERE place = 1",
    "q19": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction"
    " ORDER BY price DESC, date_time DESC, bidder DESC) AS place FROM bid) WHERE place <= 10",
    "q20": "SELECT b.*, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS opened, a.expires,"
    " a.seller, a.category FROM bid b JOIN auction a ON a.id = b.auction WHERE a.category = 10",
    "q21": "SELECT auction, bidder, price, channel, channel_id FROM (SELECT auction, bidder, price, channel,"
    " CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'"
    " ELSE REGEXP_EXTRACT(url, '[?&]channel_id=([^&]*)', 1) END AS channel_id FROM bid) WHERE channel_id IS NOT NULL",
    "q22": "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS folder1,"
    " SPLIT_INDEX(url, '/', 4) AS folder2, SPLIT_INDEX(url, '/', 5) AS folder3 FROM bid",
}
WINDOWED: Final = ("q5", "q7", "q8", "q11", "q12")
SIDE: Final = (
    "CREATE TEMPORARY VIEW side AS SELECT CAST(number AS BIGINT) AS number, text FROM (VALUES "
    + ", ".join(f"({number}, 'value {number}')" for number in range(100))
    + ") AS given (number, text)"
)


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until there are no more."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # pyright: ignore[reportMissingImports]

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        environment.get_config().set(name, value)
    environment.execute_sql(SIDE)
    for line in requests:
        request = json.loads(line)
        query = QUERIES[request["query"]]
        with _sources(environment, request["folder"], request["query"] in WINDOWED):
            try:
                count = request["count"]
                answer: Any = {"rows": _rows(environment, query)} if count else {"seconds": _run(environment, query)}
            except Exception as error:
                answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


@contextmanager
def _sources(environment: Any, folder: str, windowed: bool) -> Iterator[None]:
    """The relations over a folder's files. A watermark costs something, so that only windows have one."""
    for name, columns in RELATIONS.items():
        kept = f"{columns}, {WATERMARK}" if windowed else columns
        options = f"'connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = 'csv'"
        environment.execute_sql(f"CREATE TEMPORARY TABLE {name} ({kept}) WITH ({options})")
    yield
    for name in RELATIONS:
        environment.execute_sql(f"DROP TEMPORARY TABLE {name}")


def _run(environment: Any, query: str) -> float:
    """Seconds from the submission of the job to its end."""
    started = time.perf_counter()
    environment.execute_sql(f"CREATE TABLE dropped WITH ('connector' = 'blackhole') AS {query}").wait()
    seconds = time.perf_counter() - started
    environment.execute_sql("DROP TABLE dropped")
    return seconds


def _rows(environment: Any, query: str) -> int:
    """How many rows the result has in the end."""
    with environment.execute_sql(f"SELECT COUNT(*) FROM ({query})").collect() as found:
        return int(list(found)[-1][0])


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
