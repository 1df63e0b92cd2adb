"""How many decimals each numeric shows, where that differs from row to row: as one more expression beside the value.

PostgreSQL's numeric knows its display scale; engines' decimals have one for a whole column. So a value of a type
without a declared scale travels as two: the value, and an integer expression that says how many decimals it shows.
Tables store that expression's value in a column of its own (``catalog.objects.with_scales``); ``expressions`` derives
it of operators and functions (``composites``: of those of arrays and rows), ``relations`` carries it through a
statement's relations, and ``statements`` puts both together where a value leaves: as a column of a result or as text.
Streams store it as tables do, and a continuous view's query has it as further columns, for which its program has states
as for any others. NULL means an unknown scale: such a value shows no trailing zeros, as do all values of relations
without scales (files).

A bpchar without a length, whose blanks at the end count in no comparison, is such a value, too: kept without them, and
its scale is how many characters it shows. Equality, order and grouping are the value's alone. Does not know how an
engine writes or stores any of it.
"""

from planner.scales.statements import showing, with_scales

__all__ = ["showing", "with_scales"]
