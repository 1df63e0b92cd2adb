"""Locks of transactions and sessions on relations, rows, names, and numbers (advisory locks).

``modes`` has PostgreSQL's eight modes and their conflicts, ``targets`` what can be locked, ``manager`` the queues,
waits and deadlocks, ``held`` the locks of one transaction. Nothing here knows SQL, tables or clients.
"""
