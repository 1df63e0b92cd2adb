"""Joins of two streams or more whose times are bounded by each other: rows leave the states by themselves.

``joins`` finds such joins in a plan, and puts streams of joined rows in their place, which meet the ``tables``.
``sides`` says until when a row of each side can be joined, ``unmatched`` which rows an outer join shows without a
partner, ``fallible`` what of the conditions is computed as a row comes where rows may fail. ``states`` makes the
changes of these streams of those of the joined ones, and says when a row is done with.
"""
