"""Aggregates in Spark SQL: exact ``sums`` and the ``spreads`` of variances for views; ``ordered`` aggregates and
``pair_statistics`` for queries.
"""
