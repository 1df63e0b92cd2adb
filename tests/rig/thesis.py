"""The thesis' two running examples: figure 3.2 (microblogging) and figure 4.2 (just-in-time manufacturing).

Owns: schemas, queries and generated rows. Figure 3.2's ORDER BY has no LIMIT and so does not concern a view.
"""

from __future__ import annotations

import random
from typing import Final

from msgspec import Struct

FIRST_NAMES: Final = ("Tom", "Max", "Chris", "Ada", "Grace", "Edsger", "Barbara", "Ludwig")


class Example(Struct, frozen=True):
    """Tables with their rows, streams' columns, the view's query, and a row maker per stream."""

    tables: dict[str, tuple[str, tuple[tuple[object, ...], ...]]]
    streams: dict[str, str]
    query: str


FIGURE_3_2: Final = Example(
    tables={
        "users": (
            "id integer PRIMARY KEY, username text NOT NULL, contact_info text, region char(2), rate numeric(8,2)",
            tuple(
                (
                    key,
                    f"{FIRST_NAMES[key % 8]}{key}",
                    f"+49 {key:05}",
                    ("US", "DE", "FR")[key % 3],
                    100 + 50 * (key % 7),
                )
                for key in range(1, 61)
            ),
        )
    },
    streams={"posts": "uid integer, username text, score integer, content text"},
    query="""
with user_impact as (
  select  uid, avg(score) as score
  from    posts
  group by uid
)
select   u.username, u.contact_info,
         u.rate, i.score
from     users u, user_impact i
where    u.id = i.uid and i.score >= 1000 and
         u.region = 'DE'
order by u.rate / i.score""",
)

FIGURE_4_2: Final = Example(
    tables={
        "station": (
            "id integer PRIMARY KEY, plant text NOT NULL, location text NOT NULL, supplier text",
            tuple((key, ("Spartanburg", "Regensburg")[key % 2], f"Gate {key}", f"+1 {key:04}") for key in range(1, 13)),
        )
    },
    streams={
        "part_usage": "part_id integer, part text, station integer, worker integer",
        "part_restock": "part_id integer, part text, station integer, worker integer",
    },
    query="""
with used as (
  select    part, station, count(*)
  from      part_usage
  group by  part, station
),
restocked as (
  select    part, station, count(*)
  from      part_restock
  group by  part, station
)
select      r.part, s.location, s.supplier
from        station s, used u, restocked r
where       s.id = u.station and
            u.station = r.station and
            u.part = r.part and
            r.count - u.count < 5""",
)

EXAMPLES: Final = {"figure_3_2": FIGURE_3_2, "figure_4_2": FIGURE_4_2}
_PARTS: Final = ("Wheel", "Seat", "Engine", "Door", "Mirror")


def rows(stream: str, count: int, source: random.Random) -> list[tuple[object, ...]]:
    """Random rows of one of the examples' streams; some users and stations are unknown to the tables."""
    if stream == "posts":
        return [
            (
                user := source.randint(1, 70),
                f"user{user}",
                source.randint(0, 3000),
                f"It's post, {source.random():.4f}!",
            )
            for _ in range(count)
        ]
    return [
        (number, source.choice(_PARTS), source.randint(1, 14), source.randint(1, 6)) for number in range(1, count + 1)
    ]
