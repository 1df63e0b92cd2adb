"""``python -m bench [name ...]``: runs benchmarks, prints the table, keeps JSON, updates docs/benchmarks.md."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import asdict, replace

from bench.harness import RESULTS, ROOT, Rig, Row, machine

MODULES: Final = (
    *("copy", "inserts", "reads", "freshness", "spark_vs_streaming", "memory", "planning", "engines"),
    *("results", "connections", "separation", "leaving", "draining", "migrating", "definitions", "changes"),
    *("nexmark", "slopes", "chains", "point_reads", "dependents", "layers", "estimates", "decisions", "paces"),
    "sharing",
)
#: Benchmarks that run only when they are named: they install what they are measured beside.
NAMED: Final = ("nexmark_peers",)
SUMMARY: Final = ROOT / "docs" / "benchmarks.md"
BEGIN: Final = "<!-- measured: begin -->"
END: Final = "<!-- measured: end -->"


def main() -> int:
    """Runs what is asked for; 0 whether or not the aims are met, since a benchmark is no test."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"some of {', '.join(MODULES)}, which all run when none is named; or of {', '.join(NAMED)}",
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--seconds", type=int, default=8, help="length of one pgbench run")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    parser.add_argument("--no-summary", action="store_true", help="leave docs/benchmarks.md as it is")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - {*MODULES, *NAMED}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    rig = Rig(chosen.rounds, chosen.seconds, chosen.scale)
    try:
        for name in chosen.names or MODULES:
            run(name, rig)
    finally:
        rig.close()
    if not chosen.no_summary:
        write_summary()
    return 0


def run(name: str, rig: Rig) -> None:
    """One benchmark: its table on stdout, its figures as JSON."""
    module = importlib.import_module(f"bench.{name}")
    print(f"\n{module.TITLE}", flush=True)
    started = time.monotonic()
    rows: list[Row] = module.run(rig)
    print("\n".join(table(rows)))
    print(f"({time.monotonic() - started:.0f} s)", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    content = {
        "benchmark": name,
        "title": module.TITLE,
        "measured": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "settings": {"rounds": rig.rounds, "seconds": rig.seconds, "scale": rig.scale},
        "rows": [asdict(row) for row in rows],
    }
    (RESULTS / f"{name}-{now:%Y%m%dT%H%M%S}.json").write_text(json.dumps(content, indent=1) + "\n")


def table(rows: list[Row]) -> list[str]:
    """A Markdown table, columns aligned."""
    cells = [("case", "Millstream", "peer", "ratio", "aim", ""), *map(_cells, rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cells(row: Row) -> tuple[str, ...]:
    peer = "" if row.peer is None else f"{_number(row.peer)} {row.peer_name}".strip()
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    verdict = {None: "", True: "met", False: "missed"}[row.met]
    return (row.case, f"{_number(row.ours)} {row.unit}", peer, ratio, row.aim_text, verdict)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_summary() -> None:
    """Puts each benchmark's newest result between the markers of docs/benchmarks.md; one without any stays as it is."""
    text = SUMMARY.read_text()
    before, _, rest = text.partition(BEGIN)
    measured, _, after = rest.partition(END)
    assert rest, f"{SUMMARY} has no markers"
    old = {part.partition("\n")[0]: part.strip() for part in measured.split("### ")[1:]}
    parts = []
    for name in (*MODULES, *NAMED):
        files = sorted(RESULTS.glob(f"{name}-*.json"))
        title = importlib.import_module(f"bench.{name}").TITLE
        if not files and title in old:
            parts.append(f"### {old[title]}")
        elif files:
            content = json.loads(files[-1].read_text())
            rows = [replace(Row(**{**row, "runs": tuple(row["runs"])})) for row in content["rows"]]
            heading = f"### {content['title']}\n\n{content['measured'][:10]} on {content['machine']}."
            parts.append("\n".join([heading, "", *table(rows)]))
    SUMMARY.write_text(before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after)


if __name__ == "__main__":
    sys.exit(main())
