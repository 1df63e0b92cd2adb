"""What one client does to the database, statement by statement.

1. ``session`` takes a planned statement; ``statement_locks`` takes its locks; ``replanning`` plans it again where the
   catalog has changed meanwhile.
2. A query goes to ``executor.queries``. ``modifications`` and ``copy_from`` change rows; ``ddl`` changes the catalog,
   ``view_starts`` says with which rows a new view starts, and ``alter_table`` changes the columns and rows of a table.
3. ``executor.transactions`` collects what a transaction has changed; ``transaction_block`` says where one begins and
   ends, and ``executor.database.committer`` commits it.

``inline_statements`` does single rows on the event loop.
"""
