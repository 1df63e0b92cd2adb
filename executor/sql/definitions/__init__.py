"""Statements that define: ``ddl`` dispatches them, ``altering``, ``roles``, ``routines`` and ``user_types`` carry them
out in a transaction, and ``stored_catalog`` is the catalog as the log keeps it.
"""
