"""PySpark as the background engine. It does the work that no client waits for, in a child process that may die.

How a view's path runs on Spark:

1. ``engine.SparkEngine.run`` gets a job: a path's statements, and its inputs as Parquet files.
2. ``printing.print_path`` prints the statements as Spark SQL. It returns a reason in words where Spark cannot compute
   a statement exactly as PostgreSQL does, and the embedded engine runs the job.
3. ``supervisor.SparkProcess.submit`` sends the request as a frame (``frames``) to the child process, which it starts
   (``java``, ``settings``), watches and replaces.
4. In the child, ``driver.__main__`` answers requests, and ``driver.jobs.run`` reads the files, runs the statements and
   writes each result as Parquet runs.
5. The engine answers with these runs, which the caller commits. ``failures`` turns Spark's errors into PostgreSQL's.

A query runs in the same way, printed by ``printing.print_query``. Expressions that Spark does not have are computed by
the embedded engine's kernel in Spark's Python workers (``workers``). Only ``driver`` and ``workers`` import pyspark.
"""
