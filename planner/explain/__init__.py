"""EXPLAIN: ``plans`` of queries and programs, ``changes`` of tables, and the ``scalars`` in both, as text and JSON."""
