"""The law for inputs that change: random schemas, views and transactions, with PostgreSQL as the judge.

A case is a schema of its own, with one to five views and one to twelve transactions (or groups of those that run beside
each other), all drawn from one seed. Each answer of either database is compared; every view is read and compared
at the end of the case, most of them also before the first transaction, and at random moments in between.

1. ``schemas`` draws tables with keys and foreign keys, and perhaps streams; ``rows`` draws their values.
2. ``scalars``, ``aggregates`` and ``windows`` draw expressions, ``relations`` what stands in FROM, and ``views`` whole
   queries, each with the constructs that it has. ``failures`` draws views with expressions that fail on some rows.
   ``arrivals`` draws views of rows with what tables say as they arrive, ``interval_joins`` those of streams whose times
   bound each other.
3. ``changes`` draws statements that change rows, and ``transactions`` arranges them in blocks of up to three sessions.
4. ``cases`` puts a schema, views and transactions together from one seed, as a list of steps. Views may read views, and
   those of streams migrate to another server and back, and change their engine and their policy for rows that fail.
5. ``servers`` are the Millstreams, ``sessions`` the sessions of both databases; ``running`` executes a case on both and
   compares each answer (``answers``).
6. ``workers`` are processes that run cases beside each other.
7. ``shrinking`` removes steps, rows and parts of queries from a case that fails.

``python -m tests.law.changing`` runs cases for as long as asked (``make test-law``).
"""
