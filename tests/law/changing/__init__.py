"""The law for tables that change: random schemas, views and transactions, with PostgreSQL as the judge.

1. ``schemas`` draws tables with keys and foreign keys, and perhaps a stream; ``rows`` draws their values.
2. ``scalars`` and ``aggregates`` draw expressions, ``relations`` what stands in FROM, and ``views`` whole queries, each
   with the constructs that it has.
3. ``changes`` draws statements that change rows, and ``transactions`` arranges them in blocks of one or two sessions.
4. ``cases`` puts a schema, views and transactions together from one seed, as a list of steps.
5. ``sessions`` are the two databases; ``running`` executes a case on both and compares each answer (``answers``).
6. ``shrinking`` removes steps, rows and parts of queries from a case that fails.

``python -m tests.law.changing`` runs cases for as long as asked (``make test-law``).
"""
