"""Nexmark in Spark's Structured Streaming: CSV files as sources, all in one batch, a sink that drops all rows.

The queries are the text of tests/sql/nexmark where Structured Streaming takes it, else a form with the same result:
update mode, but for session windows, which need complete mode. Run by ``bench.nexmark_peers`` in the project's own
environment.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Final

RELATIONS: Final = {
    "person": "id bigint, name string, email string, credit_card string, city string, state string,"
    " date_time timestamp_ntz, extra string",
    "auction": "id bigint, item_name string, description string, initial_bid bigint, reserve bigint,"
    " date_time timestamp_ntz, expires timestamp_ntz, seller bigint, category bigint, extra string",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string, date_time timestamp_ntz,"
    " extra string",
}
_DAY: Final = "date_format(date_time, 'yyyy-MM-dd')"
#: By the name of a file in tests/sql/nexmark, where its text is not Spark's.
QUERIES: Final = {
    "q10": f"select auction, bidder, price, date_time, extra, {_DAY} as day, date_format(date_time, 'HH:mm') as minute"
    " from bid",
    "q11": "select bidder, count(*) as bids, session_window.start as starts, session_window.end as ends from bid"
    " group by bidder, session_window(date_time, '10 seconds')",
    "q12": "select bidder, window.start as starts, count(*) as bids from bid"
    " group by bidder, window(date_time, '10 seconds')",
    "q17": f"select auction, {_DAY} as day, count(*) as bids, count(*) filter (where price < 10000) as low_bids,"
    " count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,"
    " count(*) filter (where price >= 1000000) as high_bids,"
    " min(price) as least, max(price) as most, avg(price) as average, sum(price) as total"
    f" from bid group by auction, {_DAY}",
    "q21": "select auction, bidder, price, channel, channel_id from (select auction, bidder, price, channel,"
    " case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3'"
    " else nullif(regexp_extract(url, '[?&]channel_id=([^&]*)', 1), '') end as channel_id from bid) as found"
    " where channel_id is not null",
}
#: Queries that need a mode of their own: joins of streams append, session windows are complete.
MODES: Final = {"q3": "append", "q20": "append", "q11": "complete"}


def serve(memory: str, texts: Path, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until there are no more. ``texts`` is the folder of the queries."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.master("local[2]").getOrCreate()
    spark.range(100).selectExpr("id as key", "'value ' || id as value").createOrReplaceTempView("side")
    for line in requests:
        request = json.loads(line)
        for name, columns in RELATIONS.items():
            stream = spark.readStream.schema(columns).csv(f"{request['folder']}/{name}")
            stream.createOrReplaceTempView(name)
        query = QUERIES.get(request["query"]) or (texts / f"{request['query']}.sql").read_text()
        result = spark.sql(query)
        mode = MODES.get(request["query"], "update")
        try:
            answer: Any = {"rows": _rows(spark, result, mode)} if request["count"] else {"seconds": _run(result, mode)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


def _run(result: Any, mode: str) -> float:
    """Seconds from the start of the query until it has taken all files."""
    return _finish(result.writeStream.format("noop"), mode)


def _rows(spark: Any, result: Any, mode: str) -> int:
    """How many rows the result has: with one batch, those that are written."""
    _finish(result.writeStream.format("memory").queryName("written"), mode)
    return int(spark.table("written").count())


def _finish(writer: Any, mode: str) -> float:
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-")
    started = time.perf_counter()
    writer = writer.outputMode(mode).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    seconds = time.perf_counter() - started
    shutil.rmtree(checkpoint, ignore_errors=True)
    return seconds


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), sys.stdin, sys.stdout)
