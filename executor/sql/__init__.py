"""What one client does to the database, statement by statement.

1. ``session`` takes a planned statement; ``statement_locks`` takes its locks; ``replanning`` plans it again where the
   catalog has changed meanwhile.
2. A query goes to ``queries``; ``modifications``, ``copy_from`` and ``definitions`` change something.
3. ``transaction`` collects what has changed and commits it; ``transactions`` and ``savepoints`` say where one begins
   and ends. ``inline_statements`` does single rows on the event loop.
"""
