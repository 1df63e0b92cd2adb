"""Few rows without an engine: statements over a small delta, merges of small states, and the final relations over them.

An engine call costs some 0.4 ms before it looks at the first row, and a view of a few groups needs three of them at
every read.

1. ``grouped_statements.grouping_of`` compiles a statement that filters and groups a delta; ``Grouping.run`` computes it
   with numpy over at most ``grouped_statements.ROWS`` rows (``vector_expressions``, ``vector_operations``).
2. ``merges.merge_of`` merges the runs of a state, and ``relations.small_of`` evaluates a program's final relation, in
   plain Python over at most ``values.CELLS`` exact integers and decimals (``value_expressions``, ``ordering``).
3. For every other statement, and for every value out of the ordinary (an overflow, an infinity, NaN, a date that Python
   does not know), the answer is None. The caller then asks the engine, and its result or error counts.

Nothing here may differ from what an engine gives. ``tests/executor/test_small_operations.py`` compares each operation
of the tables ``OPERATIONS``, ``AGGREGATES`` and ``FOLDS`` with the engine.
"""

from executor.small.grouped_statements import Grouping, grouping_of
from executor.small.merges import Merge, merge_of
from executor.small.relations import Small, small_of

__all__ = ["Grouping", "Merge", "Small", "grouping_of", "merge_of", "small_of"]
