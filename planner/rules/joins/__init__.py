"""Rules about joins, and the estimates that choose their order.

``strengthen_joins`` turns an outer join into an inner one where a filter above drops the NULL rows, and
``unnest_in_place`` removes a join with a right side that has no rows of its own. ``order_joins`` reorders the inner
joins of a ``join_graph`` region by the row counts that ``cardinality`` estimates.
"""
