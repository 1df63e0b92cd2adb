"""Locks of transactions and sessions on relations, their rows, names, and numbers (advisory locks).

``modes`` has PostgreSQL's eight modes and which of them exclude each other, ``targets`` what is locked, ``manager`` the
queues, waits and deadlocks, ``held`` what one transaction has. Nothing here knows SQL, tables or clients.
"""
