"""EXPLAIN as text and JSON: ``plans`` of queries, ``changes`` of tables, and the ``scalars`` in both; continuous
``views``, which consist of ``programs`` and of ``dataflows`` above their states."""
