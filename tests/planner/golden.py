"""Golden files: expected text beside the tests; ``make rewrite`` regenerates them, and the diff is reviewed."""

from __future__ import annotations

from pathlib import Path

from planner.algebra.nodes import Relation
from planner.explain.plans import explain_relation

FOLDER = Path(__file__).parent / "golden"


def check(name: str, lines: list[str], rewrite: bool) -> None:
    """Compares lines with the golden file of that name, or writes it."""
    path = FOLDER / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if rewrite:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def before_after(before: Relation, after: Relation) -> list[str]:
    """A plan before and after a rule."""
    return [*explain_relation(before), "", "=>", "", *explain_relation(after)]
