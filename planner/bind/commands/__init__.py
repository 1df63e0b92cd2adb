"""Statements that define and read nothing: transactions, settings, cursors, PREPARE, EXPLAIN, DO, LOCK, LISTEN."""
