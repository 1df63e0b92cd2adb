"""Which rewrites a relation goes through before it becomes nodes.

Owns: the alternatives. Each rewrite has a guard of soundness of its own. Whether it pays depends on what changes, and
how often: ``planner.incremental.cost.choice`` estimates what the dataflow of each alternative takes, and chooses. The
guards of cost here only keep alternatives out that promise nothing; their thresholds are ours.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from planner.statistics import Statistics


class ViewGuard(Struct, frozen=True):
    """Which relations go above a higher-order view: those of which a row meets ``met`` rows of the largest relation
    below, on average, if the view then has at most ``groups`` times as many rows as that."""

    met: float
    groups: float


class Rewriting(Struct, frozen=True):
    """An alternative: with which higher-order views, if any, and whether joins ask for keys that are counted: where a
    join would need more than keys, these need so many ``partners`` for each of them. What ``is_forced`` needs no guard
    of cost."""

    name: str
    views: ViewGuard | None = None
    partners: float | None = None
    is_forced: bool = False


#: Few views have few rows, and save much at each change of a small relation.
_FEW: Final = ViewGuard(10_000, 0.1)
_MANY: Final = ViewGuard(100, 0.5)
_PARTNERS: Final = 2

PLAIN: Final = Rewriting("plain deltas")
#: What is taken where costs are not compared.
GUARDED: Final = Rewriting("by fixed guards", _FEW, 8)
FORCED: Final = Rewriting("higher-order views wherever they are possible", _FEW, 0, is_forced=True)
#: The alternatives, the simplest first.
ALTERNATIVES: Final = (
    PLAIN,
    Rewriting("counted keys", None, _PARTNERS),
    Rewriting("higher-order views", _FEW),
    Rewriting("higher-order views and counted keys", _FEW, _PARTNERS),
    Rewriting("more higher-order views", _MANY),
    Rewriting("more higher-order views and counted keys", _MANY, _PARTNERS),
)
#: All of them by name.
REWRITINGS: Final = {item.name: item for item in (GUARDED, FORCED, *ALTERNATIVES)}


class Sized(Struct, frozen=True):
    """What is known of the rows that a dataflow reads, and how its relation is rewritten."""

    statistics: Statistics = {}
    rewriting: Rewriting = GUARDED


#: Nothing is known.
UNSIZED: Final = Sized()
