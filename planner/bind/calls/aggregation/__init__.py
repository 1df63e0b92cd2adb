"""Aggregates, window functions, and the windows over event time that stand in GROUP BY."""
