"""Tables: their rows in a DuckDB file, the transactions that change them, and sequences.

How a statement changes a table:

1. ``store.TableStore.begin`` gives a session its ``transaction.WriteTransaction``.
2. ``statements.lock_needs.needs`` tells which rows and relations the statement locks, and the transaction waits for
   them.
3. ``statements.effects.Effects`` computes the rows that go and the rows that come, with CHECK and NOT NULL; a statement
   that finds rows by key does so without DuckDB (``statements.changes_by_key``, ``statements.row_plans``).
4. ``constraints.checks.Checker`` adds what foreign keys' actions change and checks unique and foreign keys; what is
   deferred is checked at COMMIT (``constraints.deferral``), if it needs to be (``constraints.queued_checks``).
5. ``changes`` applies the rows to DuckDB, and the ``journal`` notes them, so that a savepoint can undo them.
6. At COMMIT the journal becomes a record of the log. Rows that changed by key alone reach the DuckDB file later, with
   those of other transactions (``unsettled``, ``backlog``).

``definitions`` creates and alters stored tables and keeps the catalog's document beside them. ``temporary`` has
temporary relations and ``sequences`` the values of sequences, which no transaction takes back.
"""
