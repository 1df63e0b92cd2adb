"""Few rows without an engine: statements over a small delta, merges of small states, and the final relations over them.

An engine call costs some 0.4 ms before it looks at the first row, and a view of a few groups needs three of them at
every read. Owns: a statement that filters and groups at most ``grouping.ROWS`` rows, as numpy computes it
(``grouping``, ``columns``, ``vectors``); and over at most ``CELLS`` values, as plain Python over exact integers and
decimals, the merge of a state's runs (``merges``) and a program's final relation (``relations``, ``expressions``); for
the kinds of state and expression that are listed there. Everything else, and every value out of the ordinary (an
overflow, an infinity, NaN, a date that Python does not know), is answered None: the caller asks the engine, whose
result or error then counts. So nothing here may differ from what an engine gives.
"""

from executor.small.grouped_statements import Grouping, grouping_of
from executor.small.merges import Merge, merge_of
from executor.small.relations import Small, small_of

__all__ = ["Grouping", "Merge", "Small", "grouping_of", "merge_of", "small_of"]
