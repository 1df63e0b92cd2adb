"""Runs many cases on one server: one statement per case, or many cases in one statement.

Owns: which cases share a SELECT, for an engine to which each statement is a job. A case that is refused, or is an error
on the other server, gets its own statement; if a SELECT with several cases fails, each half is run again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from tests.compatibility.cases import Case
from tests.compatibility.compare import Outcome, Peer

#: The most cases in one SELECT.
MOST: Final = 40


def one_by_one(peer: Peer, cases: Sequence[Case], judged: Sequence[Outcome]) -> list[Outcome]:
    """Runs one statement per case."""
    return [peer.run(case.text) for case in cases]


def together(peer: Peer, cases: Sequence[Case], judged: Sequence[Outcome]) -> list[Outcome]:
    """Runs as few statements as possible; ``judged`` are PostgreSQL's outcomes."""
    found: dict[int, Outcome] = {}
    groups: dict[str, list[int]] = defaultdict(list)
    for place, (case, wanted) in enumerate(zip(cases, judged, strict=True)):
        planned = peer.run(f"EXPLAIN {case.text}")
        if planned.state != "00000":
            found[place] = planned
        elif case.target and wanted.state == "00000":
            groups[case.source].append(place)
        else:
            found[place] = peer.run(case.text)
    for source, places in groups.items():
        for start in range(0, len(places), MOST):
            some = places[start : start + MOST]
            outcomes = _selected(peer, source, [cases[place].target for place in some])
            found |= dict(zip(some, outcomes, strict=True))
    return [found[place] for place in range(len(cases))]


def _selected(peer: Peer, source: str, targets: Sequence[str]) -> list[Outcome]:
    """The outcome of each target of a SELECT."""
    whole = peer.run(f"SELECT {', '.join(targets)} {source}")
    if whole.state == "00000":
        return [
            Outcome("00000", (column,), tuple((row[at],) for row in whole.rows))
            for at, column in enumerate(whole.columns)
        ]
    if len(targets) == 1:
        return [whole]
    half = len(targets) // 2
    return _selected(peer, source, targets[:half]) + _selected(peer, source, targets[half:])
