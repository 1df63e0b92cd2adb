"""How a continuous view is maintained: its plan taken apart into a program (architecture, section 3).

``plan.plan`` makes the program of a view:

1. ``plan.normalise`` decorrelates and rewrites the query; ``rewrites`` bring it into the form that methods expect.
2. ``checks.obstacle`` says which groupings can take a stream in row by row (thesis 4.2.2, 4.2.3), by ``properties`` of
   their relations. ``methods.collect`` makes states of the rows of the other streams.
3. ``rewrites.share_groupings`` makes equal groupings one, ``retention.keep_windows`` says when their rows expire,
   and ``rewrites.live_tables`` puts groupings below their joins with tables.
4. ``plan.maintained`` asks each of ``methods`` in turn whether it maintains an operator: the method adds states and
   statements, and gives a relation that reads them.
5. The rest of the query is the program's final relation, which is computed when the view is read, or follows the
   changes of what it reads by its ``dataflow``.
6. ``programs.canonical`` names the traces by what they hold, and numbers their columns by place.

``programs`` are the result as data, and what is done with them later: ``programs.row_failures`` says which rows a
statement fails on.
"""
