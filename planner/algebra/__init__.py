"""Relational algebra, the trees between SQL text and both engines, and what works on any tree.

- ``nodes`` are the relations and scalars. ``walk`` is the one walker
  over them, ``functions`` lists every function that a node may call, ``validate`` asserts that a tree is well formed.
- ``construction`` builds trees out of trees: fresh columns, conjunctions, substitution. ``bound_rows`` is the leaf for
  rows that come with a statement, ``event_time`` the arithmetic of windows over event time.
- ``nulls`` and ``failures`` tell which columns are never NULL and which expressions may raise an error.
- ``signature`` finds equal trees whose columns have other names. ``partial_aggregates`` splits an aggregate into parts
  that merge.
- ``serialize`` writes trees as JSON; ``allow_list`` checks a tree that came from elsewhere.
"""
