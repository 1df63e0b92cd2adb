"""How a view's option ``method`` and the cost of the alternatives make a dataflow of its relation.

``auto`` and ``incremental`` leave the choice to the planner (``planner.incremental.cost.choice``), ``higher_order`` and
``delta`` ask for one rewriting, and ``recompute`` for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from catalog.objects import View
from executor.core.core import Core
from executor.maintained.expanded_views import TOO_LARGE, Expanded, Expansion, Owner, expansion_of, table_statistics
from executor.maintained.kept_rows import RowsPlan, most_bytes
from executor.maintained.view_pace import pace_options_of
from planner.incremental.cost.choice import Alternative, alternatives_of, rewritings_of
from planner.incremental.cost.usual_changes import Mix
from planner.incremental.dataflow.planning import Planned
from planner.incremental.dataflow.rewrites.rewriting import FORCED, GUARDED, PLAIN, Rewriting, Sized
from planner.statistics import Statistics

#: By ``method``, the only rewriting that it admits.
_ONLY: Final[Mapping[str, Rewriting]] = {"higher_order": FORCED, "delta": PLAIN}
_RECOMPUTED: Final = Planned(None, ("the view has method = 'recompute'",))


def method_of(view: View) -> str:
    """The view's option ``method``."""
    return dict(view.options).get("method", "auto")


def keeps_rows(view: View) -> bool:
    """Whether a view's options have its rows kept from the first read on: ``method``, or a goal or trigger for changes
    that are followed before reads. A goal of latency may be met without."""
    method, pace = method_of(view), pace_options_of(view)
    is_followed = pace.final is not None or pace.total is not None or pace.has_trigger
    return method not in ("auto", "recompute") or (method == "auto" and is_followed)


def by_method(view: View, planned: Planned) -> Planned:
    """A view's dataflow as its option ``method`` uses it."""
    return _RECOMPUTED if method_of(view) == "recompute" else planned


def admits(view: View, rewriting: Rewriting) -> bool:
    """Whether a view's option ``method`` admits a rewriting."""
    only = _ONLY.get(method_of(view))
    return rewriting != FORCED if only is None else rewriting == only


def guarded_plan(expanded: Expanded, statistics: Statistics, rewriting: Rewriting = GUARDED) -> RowsPlan:
    """A plan by one rewriting, by fixed guards where nothing else is said: that takes less time than to compare
    alternatives, and serves a view whose rows are not to be kept yet."""
    rewriting = _ONLY.get(method_of(expanded.views[0][0].view), rewriting)
    return RowsPlan(expanded, _planned(expanded, statistics, rewriting), Sized(statistics, rewriting))


def chosen_plan(
    core: Core, expanded: Expanded, statistics: Statistics, mix: Mix, standing: Rewriting | None = None
) -> RowsPlan:
    """A plan by the alternative that is expected to take least for a ``mix`` of changes. Of equal ones the ``standing``
    one stands for all."""
    found = _alternatives(core, expanded.views[0][0].view, expanded, statistics, mix, standing)
    if not found:
        return replace(guarded_plan(expanded, statistics), is_chosen=True)
    sized = Sized(statistics, found[0].rewriting)
    return RowsPlan(expanded, found[0].planned, sized, is_chosen=True, alternatives=found)


def planned_rows(core: Core, owner: Owner) -> Planned:
    """How the rows of a view would follow changes, by fixed guards."""
    found = _expansion(core, owner)
    return _by_guards(owner.view, found, table_statistics(core, found.relation))


def compared_rows(core: Core, owner: Owner) -> tuple[Planned, tuple[Alternative, ...]]:
    """How the rows of a view would follow changes, and the alternatives of which that is the first, if there is a
    choice."""
    found = _expansion(core, owner)
    statistics = table_statistics(core, found.relation)
    alternatives = _alternatives(core, owner.view, found, statistics, {}, None)
    return alternatives[0].planned if alternatives else _by_guards(owner.view, found, statistics), alternatives


def _by_guards(view: View, found: Expansion, statistics: Statistics) -> Planned:
    return by_method(view, _planned(found, statistics, _ONLY.get(method_of(view), GUARDED)))


def _expansion(core: Core, owner: Owner) -> Expansion:
    """A view over tables and traces; over the kept rows of the views that it reads where it is too large otherwise."""
    found = expansion_of(core, owner)
    if found.reason != TOO_LARGE:
        return found
    return expansion_of(core, owner, core.plans.get(owner.final(owner.view)).views)


def _planned(found: Expanded | Expansion, statistics: Statistics, rewriting: Rewriting) -> Planned:
    """The dataflow of a view's relation, unless there is a reason against it."""
    return Planned(None, (found.reason,)) if found.reason else found.followed.planned(statistics, rewriting)


def _alternatives(
    core: Core, view: View, found: Expanded | Expansion, statistics: Statistics, mix: Mix, standing: Rewriting | None
) -> tuple[Alternative, ...]:
    """The alternatives among which there is a choice."""
    if found.reason or method_of(view) in (*_ONLY, "recompute"):
        return ()
    rewritings = rewritings_of(found.relation)
    if standing in rewritings:
        rewritings.sort(key=lambda item: item != standing)
    return alternatives_of(found.followed, rewritings, statistics, mix, most_bytes(core)) if rewritings[1:] else ()
