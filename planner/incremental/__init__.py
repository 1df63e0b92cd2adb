"""How a continuous view is maintained: its plan taken apart into a program (architecture, section 3).

Owns one method, the split maintenance of the thesis (4.2): rows of a stream go through a stream pipeline into the
state of the first grouping above (``regions``, ``groupings``); all that is above the groupings is the
program's final relation, which reads the states (``reading``). ``pipelines`` refuses what the rules of the thesis
(4.2.2, 4.2.3) do not allow, in the words of ``view_rules``.

    plan.plan(query):   decorrelate -> rewrite -> first rows -> prepare -> check -> share equal groupings
                        -> keep windows -> prune -> take apart
"""
