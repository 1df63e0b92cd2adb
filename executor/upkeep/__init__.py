"""Background maintenance of continuous views.

How a view's path gets ahead in the background:

1. ``maintenance.Maintenance`` has a thread per engine. Each looks at all paths every tenth of a second
   (``paths.is_due``) and takes those that are due and that its engine is to maintain: Spark, if the view's
   ``maintenance_engine`` allows it and ``spark_jobs.SparkJobs.can_maintain`` agrees; otherwise the embedded engine.
2. ``embedded_jobs`` commits what readers have computed already, or runs one path on the embedded engine.
   ``spark_jobs`` runs all paths of the same inputs, between whose frontiers no row lies, as one Spark job.
3. A job claims its interval, so that readers end their runs there, and is recorded in ``jobs.JobList``.
4. ``commits.commit`` moves the path's frontier together with its runs by compare-and-swap, and hands the rows to the
   view in memory.
5. ``history_jobs`` keeps the rows of streams that have a history.
6. ``frontiers.Frontiers`` frees memory and log below what any path needs; ``admission.Admission`` lets writers go on
   that waited for it.
"""
