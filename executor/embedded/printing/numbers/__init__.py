"""Expressions over numbers: exact ``arithmetic`` and ``floats`` that raise as PostgreSQL's do."""
