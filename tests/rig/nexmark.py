"""Nexmark for the tests: the events of an auction house, as the benchmark of continuous queries has them.

Owns: the three relations in PostgreSQL's SQL, the table that query 13 joins, and a generator of events. Of 50 events
one is a person, three are auctions and 46 are bids. Every value is a hash of the event's number, so that a range of
numbers has the same rows whenever it is generated, and ranges need not be generated in order.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray
from pyarrow import csv

Relation = Literal["person", "auction", "bid"]
Numbers = NDArray[np.int64]

RELATIONS: Final[Mapping[Relation, str]] = {
    "person": "id bigint PRIMARY KEY, name text, email text, credit_card text, city text, state text,"
    " date_time timestamp, extra text",
    "auction": "id bigint PRIMARY KEY, item_name text, description text, initial_bid bigint, reserve bigint,"
    " date_time timestamp, expires timestamp, seller bigint, category bigint, extra text",
    "bid": "auction bigint, bidder bigint, price bigint, channel text, url text, date_time timestamp, extra text",
}
#: The table that query 13 joins with the bids.
SIDE: Final = "key bigint PRIMARY KEY, value text"
FILL_SIDE: Final = "INSERT INTO side SELECT n, 'value ' || n FROM generate_series(0, 99) AS g (n)"

#: Events of which the proportions of the relations hold exactly, and the places of each relation among them.
EPOCH: Final = 50
_PLACES: Final[Mapping[Relation, tuple[int, int]]] = {"person": (0, 1), "auction": (1, 4), "bid": (4, 50)}
#: The first id of persons and of auctions.
FIRST: Final = 1000
_BEGIN: Final = int(datetime(2024, 3, 1, 8, tzinfo=UTC).timestamp()) * 1_000_000
_NIGHT: Final = 7 * 3600 * 1_000_000
#: Steps by which an event may be earlier than those before it.
_JITTER: Final = 10
#: Auctions that a bid chooses from, unless it goes to the hot one; a hot one follows another after so many.
_OPEN: Final = 100
_HOT_AUCTIONS: Final = 60
#: Persons that bid and sell, but for the hot ones; a hot one follows another after so many.
_ACTIVE: Final = 1000
_HOT_PERSONS: Final = 10
_CATEGORIES: Final = 5

_STATES: Final = ("CA", "ID", "NY", "OR", "TX", "WA")
_CITIES: Final = ("Albany", "Austin", "Boise", "Fresno", "Portland", "Salem", "Seattle", "Spokane")
_FIRST_NAMES: Final = ("Ada", "Bela", "Carl", "Dora", "Emil", "Frida", "Gustav", "Hanna", "Ida", "Jakob")
_LAST_NAMES: Final = ("Acker", "Bauer", "Cramer", "Decker", "Engel", "Fuchs", "Gruber", "Huber", "Jung")
_THINGS: Final = ("cabinet", "clock", "globe", "lamp", "mirror", "painting", "piano", "teapot", "violin")
_WORDS: Final = ("accent", "brass", "calico", "dusty", "eccentric", "faded", "good", "heirloom", "icon", "jade", "")
#: The channels that have a number of their own, and how many others there are.
_CHANNELS: Final = ("Google", "Apple", "Facebook", "Baidu")
_OTHERS: Final = 200


class Nexmark(Struct, frozen=True):
    """A sequence of events. ``step`` is the time between two events in microseconds. After each ``day`` events seven
    hours pass, so that few events fall on different hours and dates; 0 stands for no such pauses."""

    seed: int = 1
    step: int = 20_000
    day: int = 0

    def table(self, relation: Relation, begin: int, end: int) -> pa.Table:
        """The rows of one relation among the events from ``begin`` to before ``end``, in the events' order."""
        make: Mapping[Relation, Callable[[Numbers], dict[str, Any]]] = {
            "person": self._persons,
            "auction": self._auctions,
            "bid": self._bids,
        }
        first, last = _PLACES[relation]
        numbers = np.arange(begin, end, dtype=np.int64)
        places = numbers % EPOCH
        return pa.table(make[relation](numbers[(places >= first) & (places < last)]))

    def csv(self, relation: Relation, begin: int, end: int) -> bytes:
        """The same rows as CSV without a header line."""
        target = io.BytesIO()
        csv.write_csv(self.table(relation, begin, end), target, csv.WriteOptions(include_header=False))
        return target.getvalue()

    def lines(self, relation: Relation, begin: int, end: int) -> list[bytes]:
        """The CSV lines, each with its newline."""
        return self.csv(relation, begin, end).splitlines(keepends=True)

    def _persons(self, numbers: Numbers) -> dict[str, Any]:
        first = self._choice(numbers, "first name", _FIRST_NAMES)
        last = self._choice(numbers, "last name", _LAST_NAMES)
        card = [self._text(numbers, f"card {part}", 9000, 1000) for part in range(4)]
        return {
            "id": FIRST + numbers // EPOCH,
            "name": _joined(" ", first, last),
            "email": _joined("", pc.utf8_lower(first), ".", pc.utf8_lower(last), "@mail.example"),
            "credit_card": _joined(" ", *card),
            "city": self._choice(numbers, "city", _CITIES),
            "state": self._choice(numbers, "state", _STATES),
            "date_time": self._time(numbers),
            "extra": self._extra(numbers),
        }

    def _auctions(self, numbers: Numbers) -> dict[str, Any]:
        initial = self._price(numbers, "initial bid")
        thing = self._choice(numbers, "thing", _THINGS)
        longest = 2 * _OPEN * EPOCH // 3 * self.step
        return {
            "id": _auction(numbers),
            "item_name": _joined(" ", self._choice(numbers, "kind", _WORDS[:-1]), thing),
            "description": _joined(" ", "A", thing, "of", self._text(numbers, "year", 300, 1700)),
            "initial_bid": initial,
            "reserve": initial + self._price(numbers, "reserve"),
            "date_time": self._time(numbers),
            "expires": self._time(numbers, self.step + self._draw(numbers, "open for", longest)),
            "seller": self._person(numbers, "seller"),
            "category": 10 + self._draw(numbers, "category", _CATEGORIES),
            "extra": self._extra(numbers),
        }

    def _bids(self, numbers: Numbers) -> dict[str, Any]:
        last = _auction(numbers - numbers % EPOCH + 3)
        usual = last - self._draw(numbers, "auction", _OPEN)
        auction = np.where(self._draw(numbers, "hot auction", 2) > 0, last - last % _HOT_AUCTIONS, usual)
        channel, url = self._channel(numbers)
        return {
            "auction": np.maximum(auction, FIRST),
            "bidder": self._person(numbers, "bidder"),
            "price": self._price(numbers, "price"),
            "channel": channel,
            "url": url,
            "date_time": self._time(numbers),
            "extra": self._extra(numbers),
        }

    def _channel(self, numbers: Numbers) -> tuple[Any, Any]:
        """Half of the bids come through a channel known by its name; of the others, nine in ten by a number in the
        address."""
        known = self._draw(numbers, "is known", 2) > 0
        other = self._text(numbers, "other channel", _OTHERS)
        folders = [self._text(numbers, f"folder {part}", 40) for part in range(3)]
        page = _joined("/", "https://auctions.example", *folders, "item.htm?query=1")
        silent = known | (self._draw(numbers, "is silent", 10) == 0)
        channel = pc.if_else(known, self._choice(numbers, "channel", _CHANNELS), _joined("-", "channel", other))
        return channel, pc.if_else(silent, page, _joined("", page, "&channel_id=", other))

    def _person(self, numbers: Numbers, purpose: str) -> Numbers:
        """Three times out of four the hot person of the time, else any of those that are active."""
        last = FIRST + numbers // EPOCH
        usual = last - self._draw(numbers, f"{purpose} of all", _ACTIVE)
        hot = last - last % _HOT_PERSONS + (purpose == "bidder")
        chosen = np.where(self._draw(numbers, f"hot {purpose}", 4) > 0, np.minimum(hot, last), usual)
        return np.maximum(chosen, FIRST)

    def _price(self, numbers: Numbers, purpose: str) -> Numbers:
        """Cents: any order of magnitude from one to a million units is as likely as the others."""
        exponent = self._draw(numbers, purpose, 6_000_000) / 1_000_000
        return (100 * 10**exponent).astype(np.int64)

    def _time(self, numbers: Numbers, later: Numbers | int = 0) -> pa.Array:
        pauses = numbers // self.day * _NIGHT if self.day else 0
        jitter = self._draw(numbers, "time", _JITTER * self.step)
        return pa.array(_BEGIN + numbers * self.step + pauses + jitter + later, pa.timestamp("us"))

    def _extra(self, numbers: Numbers) -> pa.Array:
        return _joined(" ", *(self._choice(numbers, f"extra {place}", _WORDS) for place in range(4)))

    def _choice(self, numbers: Numbers, purpose: str, values: Sequence[str]) -> pa.Array:
        return pa.array(values).take(pa.array(self._draw(numbers, purpose, len(values))))

    def _text(self, numbers: Numbers, purpose: str, bound: int, least: int = 0) -> pa.Array:
        """Numbers from ``least`` to before ``least + bound``, in digits."""
        return pa.array(least + self._draw(numbers, purpose, bound)).cast(pa.string())

    def _draw(self, numbers: Numbers, purpose: str, bound: int) -> Numbers:
        """For each event a number from 0 to before ``bound``, by splitmix64's finalizer."""
        start = np.array([crc32(purpose.encode()) << 20 | self.seed], np.uint64)
        mixed = (numbers.astype(np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(bound)).astype(np.int64)


def create(stream: bool) -> list[str]:
    """Statements that create all three relations as streams, or as tables, and query 13's table with its rows."""
    made = [
        f"CREATE FOREIGN TABLE {name} ({columns.replace(' PRIMARY KEY', '')}) SERVER stream"
        if stream
        else f"CREATE TABLE {name} ({columns})"
        for name, columns in RELATIONS.items()
    ]
    return [*made, f"CREATE TABLE side ({SIDE})", FILL_SIDE]


def _auction(numbers: Numbers) -> Numbers:
    """The ids of auctions by their events' numbers."""
    return FIRST + numbers // EPOCH * 3 + numbers % EPOCH - 1


def _joined(between: str, *parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, between)
