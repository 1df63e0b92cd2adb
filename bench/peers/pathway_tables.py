"""Nexmark in Pathway: CSV files as static sources, two workers, results dropped.

Queries that its tables and windows express directly; windows are updated while rows arrive, with no behaviour that
drops late rows. Static sources let it take all files as one batch. Texts of times are converted with strptime where a
query uses them as times. Run by ``bench.nexmark_peers`` in an environment with pathway, and PATHWAY_THREADS=2.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import IO, Any, Final

import pathway as pw  # pyright: ignore[reportMissingImports]

RELATIONS: Final[dict[str, dict[str, type]]] = {
    "person": {
        "number": int,
        **dict.fromkeys(("name", "email", "credit_card", "city", "state", "date_time", "extra"), str),
    },
    "auction": {
        **dict.fromkeys(("number",), int),
        **dict.fromkeys(("item_name", "description"), str),
        **dict.fromkeys(("initial_bid", "reserve"), int),
        **dict.fromkeys(("date_time", "expires"), str),
        **dict.fromkeys(("seller", "category"), int),
        "extra": str,
    },
    "bid": {
        **dict.fromkeys(("auction", "bidder", "price"), int),
        **dict.fromkeys(("channel", "url", "date_time", "extra"), str),
    },
}
_TIME: Final = "%Y-%m-%d %H:%M:%S%.f"
_TEN_SECONDS: Final = timedelta(seconds=10)


class Source:
    """The relations over a folder's files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def table(self, relation: str) -> Any:
        """A relation as it is in the files."""
        schema = pw.schema_from_types(**RELATIONS[relation])
        return pw.io.csv.read(f"{self._folder}/{relation}", schema=schema, mode="static")

    def timed(self, relation: str) -> Any:
        """A relation with ``date_time`` as a time."""
        table = self.table(relation)
        return table.with_columns(date_time=table.date_time.dt.strptime(_TIME))


def q0(source: Source) -> Any:
    return source.table("bid")[["auction", "bidder", "price", "date_time", "extra"]]


def q1(source: Source) -> Any:
    bid = source.table("bid")
    return bid.select(bid.auction, bid.bidder, bid.date_time, bid.extra, price=0.908 * bid.price)


def q2(source: Source) -> Any:
    bid = source.table("bid")
    return bid.filter(bid.auction % 123 == 0).select(pw.this.auction, pw.this.price)


def q3(source: Source) -> Any:
    auction, person = source.table("auction"), source.table("person")
    auction = auction.filter(auction.category == 10)
    person = person.filter((person.state == "OR") | (person.state == "ID") | (person.state == "CA"))
    joined = auction.join(person, auction.seller == person.number)
    return joined.select(person.name, person.city, person.state, auction=auction.number)


def q4(source: Source) -> Any:
    bid, auction = source.timed("bid"), source.timed("auction")
    auction = auction.with_columns(expires=auction.expires.dt.strptime(_TIME))
    joined = auction.join(bid, auction.number == bid.auction).select(
        auction.number, auction.category, auction.expires, bid.price, opened=auction.date_time, at=bid.date_time
    )
    while_open = joined.filter((pw.this.at >= pw.this.opened) & (pw.this.at <= pw.this.expires))
    closed = while_open.groupby(pw.this.number, pw.this.category).reduce(
        pw.this.category, final=pw.reducers.max(pw.this.price)
    )
    return closed.groupby(pw.this.category).reduce(pw.this.category, average=pw.reducers.avg(pw.this.final))


def q5(source: Source) -> Any:
    bid = source.timed("bid")
    window = pw.temporal.sliding(hop=timedelta(seconds=2), duration=_TEN_SECONDS)
    counted = bid.windowby(bid.date_time, window=window, instance=bid.auction).reduce(
        auction=pw.this._pw_instance, starts=pw.this._pw_window_start, bids=pw.reducers.count()
    )
    most = counted.groupby(counted.starts).reduce(counted.starts, most=pw.reducers.max(counted.bids))
    joined = counted.join(most, counted.starts == most.starts, counted.bids == most.most)
    return joined.select(counted.starts, counted.auction, counted.bids)


def q7(source: Source) -> Any:
    bid = source.timed("bid")
    window = pw.temporal.tumbling(duration=_TEN_SECONDS)
    most = bid.windowby(bid.date_time, window=window).reduce(
        starts=pw.this._pw_window_start, price=pw.reducers.max(pw.this.price)
    )
    joined = bid.join(most, bid.price == most.price).select(
        bid.auction, bid.price, bid.bidder, bid.date_time, most.starts
    )
    return joined.filter((pw.this.date_time >= pw.this.starts) & (pw.this.date_time - pw.this.starts < _TEN_SECONDS))


def q11(source: Source) -> Any:
    bid = source.timed("bid")
    window = pw.temporal.session(max_gap=_TEN_SECONDS)
    return bid.windowby(bid.date_time, window=window, instance=bid.bidder).reduce(
        bidder=pw.this._pw_instance,
        starts=pw.this._pw_window_start,
        ends=pw.this._pw_window_end,
        bids=pw.reducers.count(),
    )


def q12(source: Source) -> Any:
    bid = source.timed("bid")
    window = pw.temporal.tumbling(duration=_TEN_SECONDS)
    return bid.windowby(bid.date_time, window=window, instance=bid.bidder).reduce(
        bidder=pw.this._pw_instance, starts=pw.this._pw_window_start, bids=pw.reducers.count()
    )


def q17(source: Source) -> Any:
    bid = source.timed("bid")
    bid = bid.with_columns(
        day=bid.date_time.dt.strftime("%Y-%m-%d"),
        low=pw.cast(int, bid.price < 10_000),
        middle=pw.cast(int, (bid.price >= 10_000) & (bid.price < 1_000_000)),
        high=pw.cast(int, bid.price >= 1_000_000),
    )
    return bid.groupby(bid.auction, bid.day).reduce(
        bid.auction,
        bid.day,
        bids=pw.reducers.count(),
        low_bids=pw.reducers.sum(bid.low),
        middle_bids=pw.reducers.sum(bid.middle),
        high_bids=pw.reducers.sum(bid.high),
        least=pw.reducers.min(bid.price),
        most=pw.reducers.max(bid.price),
        average=pw.reducers.avg(bid.price),
        total=pw.reducers.sum(bid.price),
    )


def q20(source: Source) -> Any:
    bid, auction = source.table("bid"), source.table("auction")
    auction = auction.filter(auction.category == 10)
    columns = ("item_name", "description", "initial_bid", "reserve", "expires", "seller", "category")
    others = {name: auction[name] for name in columns}
    return bid.join(auction, bid.auction == auction.number).select(
        *(bid[name] for name in RELATIONS["bid"]), **others, opened=auction.date_time
    )


QUERIES: Final = {made.__name__: made for made in (q0, q1, q2, q3, q4, q5, q7, q11, q12, q17, q20)}


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until there are no more."""
    for line in requests:
        request = json.loads(line)
        pw.internals.parse_graph.G.clear()
        try:
            result = QUERIES[request["query"]](Source(request["folder"]))
            answer: Any = {"rows": _rows(result)} if request["count"] else {"seconds": _run(result)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def _run(result: Any) -> float:
    """Seconds of a run over all files."""
    pw.io.null.write(result)
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return time.perf_counter() - started


def _rows(result: Any) -> int:
    """How many rows the result has."""
    found = [0]

    def change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            found.append(row["rows"])

    pw.io.subscribe(result.reduce(rows=pw.reducers.count()), change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return found[-1]


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
