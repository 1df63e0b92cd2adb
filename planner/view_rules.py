"""What errors say of the rules of continuous views (thesis 4.2.2 and 4.2.3): which is broken, and where in the text.

Algebra has no positions, and rewriting changes its nodes; columns mostly stay, so these are what is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from planner.algebra.nodes import Column, Relation, Scan, Window

#: What errors say of the rule that a view breaks, by what it is about, numbered as in docs/continuous-views.md.
RULES: Final[dict[str, str]] = {
    about: f"Rule {number} of continuous views: {words}"
    for number, (about, words) in enumerate(
        (
            ("grouping", "the first pipeline breaker above every stream is a grouping."),
            ("streams", "a stream meets another stream only above the groupings of both."),
            ("tables", "the rows of a stream are joined with tables."),
            ("order", "LIMIT below a grouping has an ORDER BY; window functions and recursion stand above groupings."),
            ("lateral", "a subquery evaluated for each row of a stream uses that row alone, or joins by equalities."),
            ("immutable", "its rows do not depend on when, or for which role, they are computed."),
        ),
        start=1,
    )
}


class Places(Struct, frozen=True):
    """Positions in a statement's text, from 1.

    ``columns`` are those of streams and continuous views, where FROM names these, and those of window functions'
    results, where these are called. ``streams`` are the first places of names, for what lost its columns; ``limit`` is
    the only LIMIT's.
    """

    columns: Mapping[Column, int] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)
    limit: int | None = None

    @property
    def first(self) -> int | None:
        """Where the query first names a stream."""
        return min(self.streams.values(), default=None)

    def of(self, nodes: Iterable[Relation]) -> int | None:
        """The first place of scans and window functions, as far as it is known."""
        found = (self._of(node) for node in nodes if isinstance(node, Scan | Window))
        return min((place for place in found if place is not None), default=None)

    def _of(self, node: Scan | Window) -> int | None:
        columns = node.columns if isinstance(node, Scan) else [column for column, _ in node.calls]
        known = [self.columns[column] for column in columns if column in self.columns]
        if known or isinstance(node, Window):
            return min(known, default=None)
        return self.streams.get(node.name)
