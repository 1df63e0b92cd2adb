"""Operators, functions and aggregates applied: which one PostgreSQL would choose, and the call of ours that it is."""
