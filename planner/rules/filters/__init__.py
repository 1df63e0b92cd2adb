"""Rules that simplify predicates and expressions, and move filters towards the leaves.

``fold_constants`` computes constant expressions. ``compare_dates``, ``factor_disjunctions``, ``match_rows`` and
``look_up_arrays`` rewrite a predicate into one that costs less or that more rules understand. ``merge_filters`` leaves
one filter in a place, and ``push_down_filters`` moves its parts to the inputs that have their columns.
"""
