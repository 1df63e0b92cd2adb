"""Unique keys and foreign keys: ``checks`` raises PostgreSQL's errors, ``actions`` computes ON DELETE and ON UPDATE,
and ``deferral`` keeps what COMMIT checks.
"""
