"""What other projects' tests gave on the two servers, out of pytest's documents, and docs/compatibility.md's part.

Owns: a suite's outcome, its comparison and its words. Does not know how tests are run.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.compatibility import SUITES
from tools.suite_causes import cause

_WORDS: Final = 160
_ERROR: Final = re.compile(r"^E +(.*)$", re.MULTILINE)
_SUBTESTS: Final = re.compile(r"(\d+) subtests passed")
_INTRODUCTION: Final = """
`python -m tools.suites` runs the whole test suites of other projects, from their source packages, on PostgreSQL 15 and
on Millstream: the tests of asyncpg, and SQLAlchemy's dialect suite (`sqlalchemy.testing.suite`) with three drivers. On
both servers the SQLAlchemy suite runs without the extensions `citext` and `hstore`, which it creates but does not use,
and without its materialized view with an index.
"""


class Ran(Struct, frozen=True):
    """A suite's outcome on one server: the tests that passed, and why the others did not, but for those skipped."""

    passed: frozenset[str]
    failed: Mapping[str, str]
    subtests: int


#: The outcomes on PostgreSQL and on Millstream, by suite.
Both = Mapping[str, tuple[Ran, Ran]]


def outcome(folder: Path) -> Ran:
    """The outcome that a folder of JUnit documents tells. A test's name is without the driver's and the server's."""
    passed, failed = set[str](), dict[str, str]()
    for document in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(document).iter("testcase"):
            owner = str(case.get("classname")).rpartition(".")[2].partition("_postgresql")[0]
            name, bad = f"{owner}::{case.get('name')}", case.find("failure")
            bad = case.find("error") if bad is None else bad
            if bad is not None:
                failed[name] = reason(bad.text or "")
            elif case.find("skipped") is None:
                passed.add(name)
    told = " ".join(output.read_text(errors="replace") for output in sorted(folder.glob("*.txt")))
    return Ran(frozenset(passed - failed.keys()), failed, sum(int(found) for found in _SUBTESTS.findall(told)))


def reason(trace: str) -> str:
    """The first line of an error in a traceback."""
    found = _ERROR.search(trace)
    return " ".join(found[1].split())[:_WORDS] if found else "no error is told"


def totals(wanted: Ran, found: Ran) -> str:
    """Of what PostgreSQL passes, how much passes here, and the same of subtests."""
    both = len(wanted.passed & found.passed)
    share = both / max(len(wanted.passed), 1)
    return f"{len(wanted.passed)} | {both} | {share:.1%} | {wanted.subtests or ''} | {found.subtests or ''}"


def failures(results: Both) -> Iterator[str]:
    """The tests that PostgreSQL passes and Millstream does not, without their parameters, grouped by cause."""
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for suite, (wanted, found) in results.items():
        for name in wanted.passed - found.passed:
            why = found.failed.get(name, "skipped")
            groups[cause(name) or why][f"{suite.partition('+')[0]}: {name.partition('[')[0]}"] += 1
    for why, counted in sorted(groups.items(), key=lambda group: (-group[1].total(), group[0])):
        yield f"- {why} ({counted.total()}): {', '.join(_named(counted))}"


def _named(counted: Mapping[str, int]) -> Iterable[str]:
    return [f"`{name}`" + (f" ({count})" if count > 1 else "") for name, count in sorted(counted.items())]


def section(results: Both) -> Iterator[str]:
    """The page's part."""
    yield f"{SUITES}{_INTRODUCTION}"
    yield "| suite | passed on PostgreSQL | of these, on Millstream | share | subtests on PostgreSQL | on Millstream |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield from (f"| {suite} | {totals(*both)} |" for suite, both in results.items())
    yield "\nFailing tests by cause, with the number of cases over all drivers:\n"
    yield from failures(results)
