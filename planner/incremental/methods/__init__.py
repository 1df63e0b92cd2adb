"""The methods by which a continuous view's operators are maintained.

``method`` is the interface of a method; ``planner.incremental.plan.plan`` lists those that it tries. A method is a
folder or a file here:

    collect  the rows of a stream that no grouping takes in are a state; it looks at the plan as a whole, before the
             others are asked for each operator
    interval inner joins of streams whose times bound each other: the joined rows are a stream for the other methods
    split    split maintenance (thesis 4.2): a stream's rows go into the state of the first grouping above them
"""
