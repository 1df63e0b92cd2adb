"""One transaction's uncommitted changes: rows of streams, the tables' write transaction, the catalog, and new views.

``transaction`` collects them and makes the log record of them; ``result`` is what a statement gives back. The commit is
``executor.database``'s.
"""
