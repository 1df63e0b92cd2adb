"""What one client does to the database, statement by statement.

1. ``session`` takes a planned statement; ``statement_locks`` takes its locks; ``replanning`` plans it again where the
   catalog has changed meanwhile.
2. A query goes to ``executor.queries``. ``modifications`` and ``copy_from`` change rows; ``ddl`` changes the catalog,
   ``alter_table`` the columns and rows of a table, and ``view_options`` the options of a view. ``view_plans`` makes the
   program of a view, for CREATE VIEW and for EXPLAIN (``explain``, ``explained_views``), and ``view_starts`` says with
   which rows a new view starts.
3. ``executor.transactions`` collects what a transaction has changed; ``transaction_block`` says where one begins and
   ends, and ``executor.database.committer`` commits it.

``inline_statements`` does single rows on the event loop.
"""
