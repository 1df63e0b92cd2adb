"""Inner joins of two streams whose times are bounded by each other: rows leave the states by themselves.

``joins`` finds such joins in a plan, and puts streams of joined rows in their place. ``states`` makes the changes of
these streams of those of the joined ones, and says when a row is done with.
"""
