"""The dataflow of a relation over changing inputs: how its rows follow the changes of tables and states.

1. ``rewrites`` put groupings below their joins with small relations, and let joins that ask for partners ask for
   counted keys. ``planning.dataflow_of`` walks the relation from its leaves up. It leaves joins, filters and
   projections in place, and makes a node (``graph``) of everything below an operator that they end at.
2. Each method is a file with its equation and guard: ``propagation`` (filters, projections and joins of changed rows),
   ``counted_partners`` (left joins with many rows for each key), ``retraction`` (groupings whose aggregates can be
   taken back, ``float_sums`` among them), ``first_rows`` (LIMIT, and the least and the greatest value),
   ``first_of_partitions`` (the first rows of each one), ``ordered_windows`` (windows, as far as a change reaches),
   ``partition_totals`` (aggregates of partitions), ``time_bounds`` (comparisons with ``now()``), ``recursion`` (WITH
   RECURSIVE, round after round), ``recomputation`` (the touched keys of any other operator). ``groupings`` takes a
   grouping apart where its aggregates need several.
   ``looked_up`` takes rows out of memory that a table has.
3. What no method takes stays above the nodes, and is computed when the rows are read.

The graph says, for each node, the relation that makes its change from the changes and rows of others, and by which
columns their rows must be found. ``executor/dataflow`` keeps the rows and runs the relations.
"""
