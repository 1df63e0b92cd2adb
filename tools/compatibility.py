"""``python -m tools.compatibility``: generated cases on Millstream and PostgreSQL, and docs/compatibility.md.

Starts both servers, prints the rates of both engines and what differs, and writes the table per construct with the
differences and refusals by name. Equal seeds give equal cases.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
ENGINES: Final = ("embedded", "spark")
SPARK: Final = {"spark_master": "local[2]", "spark_driver_memory": "1g"}
#: Where the parts of the page begin that ``tools.clients``, ``suites`` and ``regression`` write, which come last.
CLIENTS: Final = "## Clients\n"
SUITES: Final = "## Suites\n"
REGRESSION: Final = "## PostgreSQL's regression tests\n"
INTRODUCTION: Final = """# Compatibility

This page compares Millstream with PostgreSQL 15. `make compatibility` runs the comparison and writes the page.

A generator creates expressions and queries. The expressions combine PostgreSQL's own operators, functions, aggregates
and casts with columns and literals of every type that Millstream stores, including NULLs and edge values. The queries
use each SQL construct over small tables. Each case runs on Millstream and on PostgreSQL over the network protocol. The
results are compared in values, column names, types, type modifiers and SQLSTATE. Numerics are compared as text, doubles
to 12 digits, and rows without ORDER BY in any order.

- **equal**: both results are equal.
- **refused**: Millstream raises 0A000 and computes nothing.
- **different**: everything else.

The cases run on both engines: the embedded engine, which is the default, and Spark (`SET query_engine = 'spark'`).
Spark computes the queries over tables, views and files for which its result equals PostgreSQL's, and refuses the
others.

`ARGS="--rounds 8 --spark-rounds 8 --seed 3"` runs more cases; `ARGS="--engine spark"` runs one engine and does not
write the page. The test `tests/compatibility` runs a sample and fails on a difference that is not listed below. `make
test ARGS="--whole tests/sql"` also runs the scripts of `tests/sql/scripts` and TPC-H at scale 0.1 on Spark.

## Decimals of numerics

A numeric shows as many decimals as in PostgreSQL if its type, or the types of its operands, determine the number: for
literals, integers, columns and casts with declared digits, and for sums, products, quotients and aggregates of these,
also in continuous views.

A column declared `numeric` without digits keeps the decimals of each value, at most 18; a value written with more is
an error (22003). So do arrays and composite types of such numerics, and all expressions, groups, set operations,
windows, texts and documents computed from them.

The exceptions are:

- Streams that follow a folder, quotients of scalar subqueries that can return several rows, recursion without ALL, and
  aggregates of CASE and similar expressions in queries that read no such column do not keep decimals that differ from
  row to row. There a value shows no trailing zeros, and values of several scales that meet show the largest scale.
- Roots, powers and logarithms within an aggregate can show another number of trailing zeros.
- A quotient, root, power, exponential or logarithm has at most 20 decimals, and a product of values that keep their own
  decimals at most 18.
- A group of equal values shows the most decimals among them.
- Groups and DISTINCT of jsonb compare texts, so 1.0 and 1 are different.
- Bounds of a `numrange` keep 20 digits before the decimal point and 18 after it, and show no trailing zeros.

## Results
"""
#: Results by engine.
Compared = Mapping[str, Sequence[Result]]


def main() -> int:
    """Runs; 1 where there is a difference that is not listed."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="each has about two thousand cases")
    parser.add_argument("--spark-rounds", type=int, default=1, help="those that run on Spark, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="how many examples of each difference to print")
    parser.add_argument("--engine", choices=ENGINES, help="one engine alone; leaves docs/compatibility.md as it is")
    parser.add_argument("--no-page", action="store_true", help="leave docs/compatibility.md as it is")
    chosen = parser.parse_args()
    rounds = {"embedded": chosen.rounds, "spark": chosen.spark_rounds}
    results = compared(chosen.seed, {chosen.engine: rounds[chosen.engine]} if chosen.engine else rounds)
    for engine, found in results.items():
        print("\n".join([*examples(found, chosen.show), f"{engine}: {rate(found)}"]))
    if not chosen.no_page and not chosen.engine:
        text = PAGE.read_text()
        others = min(place for place in (text.find(CLIENTS), text.find(SUITES), len(text)) if place >= 0)
        PAGE.write_text(f"{page(results)}\n{text[others:]}".rstrip() + "\n")
    every = itertools.chain.from_iterable(results.values())
    new = {item.name for item in every if item.verdict is Verdict.DIFFERENT and known(item.name) is None}
    print("\n".join(f"different and not listed: {name}" for name in sorted(new)))
    return 1 if new else 0


def with_part(text: str, heading: str, lines: Iterable[str]) -> str:
    """The page with a part of its own, which begins with its heading, in place of what stood there, or at the end."""
    before, found, after = text.partition(heading)
    _, mark, others = after.partition("\n## ") if found else ("", "", "")
    return "\n".join([before.rstrip() + "\n", *lines]) + "\n" + mark + others


def compared(seed: int, rounds: Mapping[str, int]) -> Compared:
    """The results of all cases on each engine, which has its number of rounds."""
    judge = Postgres()
    found: dict[str, Sequence[Result]] = {}
    try:
        with Millstream(settings=SPARK if "spark" in rounds else {"spark_enabled": False}) as server:
            if "spark" in rounds:
                server.wait_for_spark()
            for engine, count in rounds.items():
                comparison = Comparison(server.dsn(), judge.dsn(), engine)
                found[engine] = list(comparison.results(cases(seed, count)))
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


def page(results: Compared) -> str:
    """docs/compatibility.md."""
    parts = [
        INTRODUCTION,
        "".join(f"- {engine}: {rate(found)}.\n" for engine, found in results.items()),
        "\n".join(table(results)),
        *_differences(results),
        *_refusals(results["embedded"]),
        *_computed(results["spark"]),
    ]
    return "\n".join(parts) + "\n"


def table(results: Compared) -> Iterator[str]:
    """A line for each construct, with the counts of each engine."""
    counts: dict[str, dict[str, Counter[Verdict]]] = defaultdict(lambda: defaultdict(Counter))
    for engine, found in results.items():
        for item in found:
            counts[item.case.construct][engine][item.verdict] += 1
    heads = ("cases", *(kind.value for kind in Verdict))
    yield f"| construct | {' | '.join(f'{engine}: {head}' for engine in results for head in heads)} |"
    yield f"|---|{'---:|' * len(results) * len(heads)}"
    for construct, by_engine in sorted(counts.items(), key=lambda item: item[0].lower()):
        cells = [count for engine in results for count in _cells(by_engine[engine])]
        yield f"| {construct} | {' | '.join(map(str, cells))} |"


def _cells(found: Counter[Verdict]) -> list[int]:
    return [found.total(), *(found[kind] for kind in Verdict)]


def _differences(results: Compared) -> Iterator[str]:
    yield "\n## Known differences\n"
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in sorted(KNOWN.items()):
        names[reason].append(name)
    for reason, found in sorted(names.items()):
        yield f"- {', '.join(f'`{name}`' for name in found)}: {reason}."
    for engine, found_there in results.items():
        met = _by_name(found_there, Verdict.DIFFERENT)
        listed = ", ".join(f"`{name}` {len(items)}" for name, items in met.items())
        yield f"\nFound in this run ({engine}): {listed or 'none'}."


def _refusals(results: Sequence[Result]) -> Iterator[str]:
    yield "\n## Refused by the embedded engine\n\nEach of these raises 0A000 with its name."
    names: dict[str, set[str]] = defaultdict(set)
    for name, items in _by_name(results, Verdict.REFUSED).items():
        for item in items:
            if item.name == item.case.name:
                names[item.case.construct].add(item.found.message if name == item.case.construct else name)
    for construct, found in sorted(names.items(), key=lambda item: item[0].lower()):
        if construct not in ("nested expressions", "operators on any types"):
            yield f"\n**{construct}**: " + ", ".join(f"`{name}`" for name in sorted(found))


def _computed(results: Sequence[Result]) -> Iterator[str]:
    """What Spark never refused, and what it computed of some types or arguments only, by construct."""
    yield (
        "\n## Computed by Spark\n\nA construct is listed if a case of it was equal, in *italics* if other arguments"
        " were refused. Everything else raises 0A000 with its name."
    )
    verdicts: dict[tuple[str, str], set[Verdict]] = defaultdict(set)
    for item in results:
        if item.found.state == "00000" or item.verdict is Verdict.REFUSED:
            verdicts[item.case.construct, item.case.name].add(item.verdict)
    shown: dict[str, list[str]] = defaultdict(list)
    for (construct, name), found in sorted(verdicts.items()):
        if Verdict.EQUAL in found and name != construct:
            shown[construct].append(f"*`{name}`*" if Verdict.REFUSED in found else f"`{name}`")
    for construct, names in sorted(shown.items(), key=lambda item: item[0].lower()):
        if construct not in ("nested expressions", "operators on any types"):
            yield f"\n**{construct}**: {', '.join(names)}"


if __name__ == "__main__":
    sys.exit(main())
