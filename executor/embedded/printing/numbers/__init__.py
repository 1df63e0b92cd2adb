"""Expressions over numbers: exact ``arithmetic``, and ``floats`` with PostgreSQL's errors."""
