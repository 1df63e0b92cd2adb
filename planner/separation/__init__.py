"""Queries that stop between two steps and go on elsewhere (thesis, chapter 6).

1. ``common_results.compute_once`` finds what a plan computes at several places.
2. ``cuts.cut`` cuts the plan at its pipeline breakers; ``slicing`` also cuts the input of one pipeline.
3. ``cuts.select_state`` chooses the finished results that a query takes along, and ``inputs`` the rows of tables.
4. ``carried_state.decide`` chooses between moving, computing again and waiting, by cost.
"""
