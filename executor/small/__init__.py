"""Evaluates statements over a small delta, merges of small states and the final relations over them without an engine.

An engine call costs some 0.4 ms before it reads the first row, and a view of a few groups needs three of them per read.

1. ``grouped_statements.grouping_of`` compiles a statement that filters and groups a delta; ``Grouping.run`` computes it
   with numpy over at most ``grouped_statements.ROWS`` rows (``vector_expressions``, ``vector_operations``).
2. ``merges.merge_of`` merges the runs of a state, and ``relations.small_of`` evaluates a program's final relation, in
   plain Python over at most ``values.CELLS`` exact integers and decimals (``value_expressions``, ``ordering``).
   ``few_rows.few_of`` also joins and groups: a dataflow's statements over changed rows and those that they meet.
3. For every other statement, and for unusual values (an overflow, an infinite number, NaN), the answer is None. The
   caller then asks the engine, and the engine's result or error counts.
4. ``small_table.SmallTable`` has a few rows as Python's values, which the statements of a dataflow take and give.

Results here must equal an engine's. ``tests/executor/test_small_operations.py`` compares each operation of the tables
``OPERATIONS``, ``AGGREGATES`` and ``FOLDS`` with the engine.
"""

from executor.small.few_rows import FewRows, few_of
from executor.small.grouped_statements import Grouping, grouping_of
from executor.small.merges import Merge, merge_of
from executor.small.relations import Small, small_of
from executor.small.small_table import AnyTable, SmallTable, few, table_of, together

__all__ = [
    "AnyTable",
    "FewRows",
    "Grouping",
    "Merge",
    "Small",
    "SmallTable",
    "few",
    "few_of",
    "grouping_of",
    "merge_of",
    "small_of",
    "table_of",
    "together",
]
