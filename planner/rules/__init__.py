"""Rewriting rules: pure functions from a relation to an equal one, one file each.

1. ``guard_arguments`` and ``guard_subqueries`` (``errors``) run first, once: they say for which rows an aggregate's
   argument or a subquery is evaluated. Queries of system relations have gone through ``order_system_rows`` before.
2. ``optimise`` applies ``RULES`` in their order, again and again, until no rule changes the relation. The list contains
   ``REWRITES``: rules of ``filters``, ``joins``, ``row_order``, ``subqueries`` and ``projections``. Each rule is sound
   alone; the order only saves work.
3. ``raise_errors`` runs last, once: it raises the errors of constants, such as ``1 / 0``.
4. ``with_ordered_joins`` reorders the joins of an optimised relation by ``ordering`` rules and statistics.

``decorrelate`` runs before ``optimise`` where no subquery may stay (continuous views), and ``unnest`` where an engine
has no plan for a correlated one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from typing import Final

from catalog.values.errors import SqlError
from planner.algebra.nodes import Relation
from planner.algebra.validate import validate
from planner.algebra.walk import by_class
from planner.rules.errors.guard_arguments import guard_arguments
from planner.rules.errors.guard_subqueries import guard_subqueries
from planner.rules.errors.raise_errors import raise_errors
from planner.rules.filters.compare_dates import compare_dates
from planner.rules.filters.factor_disjunctions import factor_disjunctions
from planner.rules.filters.fold_constants import fold_constants
from planner.rules.filters.look_up_arrays import look_up_arrays
from planner.rules.filters.match_rows import match_rows
from planner.rules.filters.merge_filters import merge_filters
from planner.rules.filters.push_down_filters import push_down_filters
from planner.rules.joins.order_joins import order_joins
from planner.rules.joins.strengthen_joins import strengthen_joins
from planner.rules.joins.unnest_in_place import unnest_in_place
from planner.rules.node_rule import NodeRule
from planner.rules.projections.merge_projects import merge_projects
from planner.rules.projections.prune_columns import prune_columns
from planner.rules.row_order.compute_ntile import compute_ntile
from planner.rules.row_order.compute_window_keys import compute_window_keys
from planner.rules.row_order.number_by_rows import number_by_rows
from planner.rules.row_order.order_lists import order_lists
from planner.rules.subqueries.decorrelate import decorrelate, unnest
from planner.rules.subqueries.join_existing import join_existing
from planner.statistics import Statistics

__all__ = [
    "REWRITES",
    "RULES",
    "Rule",
    "decorrelate",
    "optimise",
    "ordering",
    "rewrite",
    "unnest",
    "with_ordered_joins",
]

Rule = Callable[[Relation], Relation]

#: All but pruning: what may run before equal subtrees are looked for (pruning makes them differ).
REWRITES: Final[tuple[Rule, ...]] = (
    order_lists,  # first: subqueries that become joins keep no order, and sorts that stay are in the others' way
    fold_constants,  # then: a predicate that is literally true or false decides what the others see
    compare_dates,  # after folding, which makes constants of dates and intervals
    factor_disjunctions,  # before pushing: what all arms share may go to an input, the OR may not
    match_rows,  # before pushing: what it leaves may become joins' predicates
    look_up_arrays,  # anywhere: a filter stays one
    number_by_rows,  # before merging: what it leaves is a filter
    merge_filters,  # one filter per place, so that the next rule sees all predicates at once
    unnest_in_place,  # before pushing: a filter may go below it, and not into a lateral join's right side
    strengthen_joins,  # before pushing: a filter may enter an inner join where an outer one blocks it
    push_down_filters,  # turns cross joins with filters into inner joins with predicates
    join_existing,  # after pushing: a filter reaches the rows that it is about, and the join is with these
    compute_window_keys,  # anywhere: a window stays one
    compute_ntile,  # anywhere, for that reason
    merge_projects,  # after pushing, which moves filters out from between projections
)

RULES: Final[tuple[Rule, ...]] = (
    merge_projects,  # first, and with the next: most statements need no more, and the others see a smaller relation
    prune_columns,
    *REWRITES,
    prune_columns,  # last: what was merged away or pushed down no longer needs its columns above
)


def ordering(statistics: Statistics) -> tuple[Rule, ...]:
    """The rules by which joins that are optimised already come into another order."""
    return (
        partial(order_joins, statistics=statistics),  # needs filters where they end up, to estimate what they leave
        prune_columns,  # what a join no longer needs above it depends on its place
    )


#: Rounds after which rules that still change something are taken to undo each other.
_BOUND: Final = 100


def rewrite(relation: Relation, rules: tuple[Rule, ...]) -> Relation:
    """The relation that no rule changes any more. Raises 54001 for a plan too deep to compare."""
    try:
        return _rewritten(relation, rules)
    except RecursionError:
        hint = "Split the statement, or nest its expressions less deeply."
        raise SqlError("54001", "stack depth limit exceeded", hint=hint) from None


def _rewritten(relation: Relation, rules: tuple[Rule, ...]) -> Relation:
    unchanged = 0
    nodes = by_class((relation,))
    made: dict[Rule, Relation] = {}  # what each rule made last, which it leaves as it is
    for rule in islice(cycle(rules), _BOUND * len(rules)):
        is_made = made.get(rule) is relation
        is_idle = is_made or (isinstance(rule, NodeRule) and not rule.may_change(relation, nodes))
        after = relation if is_idle else rule(relation)
        if after is relation or after == relation:
            unchanged += 1
        else:
            assert after.columns == relation.columns, f"{rule} changed the columns"
            relation, unchanged, nodes = after, 0, by_class((after,))
        made[rule] = relation
        if unchanged == len(rules):
            if __debug__:
                validate(relation)
            return relation
    raise AssertionError(f"rules still change the relation after {_BOUND} rounds")


def optimise(relation: Relation) -> Relation:
    """An equal relation that costs less: the same rows, columns and order. Raises 22012 for ``1 / 0``."""
    return raise_errors(rewrite(guard_subqueries(guard_arguments(relation)), RULES))


def with_ordered_joins(relation: Relation, statistics: Statistics) -> Relation:
    """An optimised relation with its joins in the order that statistics suggest, for what runs them as written."""
    return rewrite(relation, ordering(statistics))
