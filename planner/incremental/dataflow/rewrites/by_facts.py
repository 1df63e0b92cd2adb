"""What facts about the rows of tables make needless: joins, and groupings.

The rules are tried until none holds: what one has left out may be all that another relation was read for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.algebra.nodes import Relation
from planner.incremental.dataflow.facts import Simpler, Tables
from planner.incremental.dataflow.rewrites.known_groups import without_known_groups
from planner.incremental.dataflow.rewrites.known_partners import without_known_partners
from planner.rules import optimise

#: The rules, in the order in which they are tried. Each has its equations and guards in its file.
RULES: Final[tuple[Callable[[Relation, Tables], Simpler | None], ...]] = (
    without_known_groups,  # first: the rows of what was a grouping may be all rows of a table
    without_known_partners,
)


def by_facts(relation: Relation, tables: Tables) -> Simpler:
    """The relation, optimised, without what facts about ``tables`` make needless; the same one where nothing is."""
    left_out: dict[str, None] = {}
    while (found := next(filter(None, (rule(relation, tables) for rule in RULES)), None)) is not None:
        relation = optimise(found.relation)
        left_out.update(dict.fromkeys(found.left_out))
    return Simpler(relation, tuple(left_out))
