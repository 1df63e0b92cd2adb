"""``python -m tools.compatibility``: generated cases on Millstream and PostgreSQL, and docs/compatibility.md.

Starts both servers, prints the rate and what differs, and writes the table per construct with the differences and
refusals by name. Equal seeds give equal cases.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.compatibility.cases import cases
from tests.compatibility.compare import Verdict
from tests.compatibility.comparison import Comparison, Result
from tests.compatibility.known import KNOWN, known
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "compatibility.md"
INTRODUCTION: Final = """# Compatibility

A generator writes expressions from PostgreSQL's own tables of operators, functions, aggregates and casts over columns
and literals of every type that Millstream stores, with NULLs and edge values, and queries of each construct over small
tables. Each case runs on Millstream and on PostgreSQL 15 through the wire and is compared in values, columns' names,
types and modifiers, and SQLSTATE. **Refused** is an error 0A000: nothing is computed. **Different** is everything else
that is not equal. Numerics are compared by value to 15 decimals, doubles to 12 digits, rows without ORDER BY as a bag.

`make compatibility` runs it and writes this page (`ARGS="--rounds 8 --seed 3"`); some of its cases are a test
(`tests/compatibility`), which fails on a difference that is not listed here.
"""


def main() -> int:
    """Runs; 1 where there is a difference that is not listed."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="each has about two thousand cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="how many examples of each difference to print")
    parser.add_argument("--no-page", action="store_true", help="leave docs/compatibility.md as it is")
    chosen = parser.parse_args()
    results = compared(chosen.seed, chosen.rounds)
    if chosen.show:
        print("\n".join(examples(results, chosen.show)))
    print(rate(results))
    if not chosen.no_page:
        PAGE.write_text(page(results))
    new = {item.name for item in results if item.verdict is Verdict.DIFFERENT and known(item.name) is None}
    print("\n".join(f"different and not listed: {name}" for name in sorted(new)))
    return 1 if new else 0


def compared(seed: int, rounds: int) -> list[Result]:
    """The results of all cases."""
    judge = Postgres()
    try:
        with Millstream(settings={"spark_enabled": False}) as server:
            comparison = Comparison(server.dsn(), judge.dsn())
            found = list(comparison.results(cases(seed, rounds)))
            comparison.close()
    finally:
        judge.stop()
    return found


def rate(results: Sequence[Result]) -> str:
    """The result in a line."""
    counts = Counter(item.verdict for item in results)
    shares = ", ".join(f"{counts[kind]:,} {kind.value} ({counts[kind] / len(results):.1%})" for kind in Verdict)
    return f"{len(results):,} cases: {shares}"


def examples(results: Sequence[Result], each: int) -> Iterator[str]:
    """Cases of each name that differs."""
    for name, items in _by_name(results, Verdict.DIFFERENT).items():
        yield f"## {name}: {len(items)}"
        for item in items[:each]:
            yield f"  {item.case.text}\n    found  {item.found}\n    wanted {item.wanted}"


def _by_name(results: Sequence[Result], verdict: Verdict) -> Mapping[str, list[Result]]:
    found: dict[str, list[Result]] = defaultdict(list)
    for item in results:
        if item.verdict is verdict:
            found[item.name].append(item)
    return dict(sorted(found.items()))


def page(results: Sequence[Result]) -> str:
    """docs/compatibility.md."""
    parts = [
        INTRODUCTION,
        f"{rate(results)}.\n",
        "\n".join(table(results)),
        *_differences(results),
        *_refusals(results),
    ]
    return "\n".join(parts) + "\n"


def table(results: Sequence[Result]) -> Iterator[str]:
    """A line for each construct."""
    counts: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for item in results:
        counts[item.case.construct][item.verdict] += 1
    yield "| construct | cases | equal | refused | different |\n|---|---:|---:|---:|---:|"
    for construct, found in sorted(counts.items(), key=lambda item: item[0].lower()):
        yield f"| {construct} | {found.total()} | {' | '.join(str(found[kind]) for kind in Verdict)} |"


def _differences(results: Sequence[Result]) -> Iterator[str]:
    yield "\n## Known differences\n"
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in sorted(KNOWN.items()):
        names[reason].append(name)
    for reason, found in sorted(names.items()):
        yield f"- {', '.join(f'`{name}`' for name in found)}: {reason}."
    met = _by_name(results, Verdict.DIFFERENT)
    yield f"\nMet in this run: {', '.join(f'`{name}` {len(items)}' for name, items in met.items()) or 'none'}."


def _refusals(results: Sequence[Result]) -> Iterator[str]:
    yield "\n## Refused\n\nEach of these is an error 0A000 that names it."
    names: dict[str, set[str]] = defaultdict(set)
    for name, items in _by_name(results, Verdict.REFUSED).items():
        for item in items:
            if item.name == item.case.name:
                names[item.case.construct].add(item.found.message if name == item.case.construct else name)
    for construct, found in sorted(names.items(), key=lambda item: item[0].lower()):
        if construct not in ("nested expressions", "operators on any types"):
            yield f"\n**{construct}**: " + ", ".join(f"`{name}`" for name in sorted(found))


if __name__ == "__main__":
    sys.exit(main())
