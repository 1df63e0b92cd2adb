"""The child process that owns Spark: ``python -m executor.spark.driver``.

1. ``__main__`` reads requests from the server (``executor.spark.frames``) and answers each in a thread of its own.
2. ``session`` holds the Spark session and lends jobs sessions of their own: ``classic_session`` starts Spark within
   this process or on a cluster, ``connect_session`` uses a Spark Connect endpoint.
3. ``jobs.run`` reads a job's inputs (``parquet_inputs``), runs its statements and writes their rows as Parquet runs.
4. ``kept_plans`` runs a statement that Spark has analysed before over the files of the next job, and
   ``recursion_rounds`` computes WITH RECURSIVE ... UNION round by round.
"""
