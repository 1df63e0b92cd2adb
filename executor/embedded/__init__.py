"""DuckDB in the server's process, over Arrow: the engine that clients wait for. Only this package imports duckdb.

How a query runs:

1. ``connection.Connection.query`` gets a relation and its inputs, as Arrow tables or as files. The relation's text and
   prepared statement are kept by its identity; otherwise ``printing.dialect.DuckPrinter`` prints the relation.
2. The connection binds the inputs as sources of the statement and executes it. For operations that DuckDB lacks,
   the SQL calls macros and Python functions (``functions``), which ``instance.Instance`` defines once.
3. ``results`` gives the rows as Arrow in exactly the relation's types, whole or while they are computed.
4. ``errors.translate`` turns DuckDB's exceptions into PostgreSQL's errors. Where decimals overflow or a plan fails, the
   connection prints the statement once more in another way.

A job of a continuous view runs in ``engine.EmbeddedEngine.run``: each statement's rows, merged by its state's key. A
few rows go to ``executor.small`` instead. A long query keeps its pipelines' results in temporary tables
(``pipeline_results``), and a statement that does not stop when it is cancelled is left to end in a thread of its own
(``detached_statements``). Spark's Python workers call the engine through ``kernel``.
"""
