"""Queries that run pipeline by pipeline and can leave with their state (architecture, section 2; thesis, chapter 6).

``service`` is the database's interface to them. ``steps`` decides which queries run so, and ``slices`` which of their
aggregations read their input in slices. ``step_runner`` runs them (``spark_results`` keeps results on Spark),
``forecasts`` estimates the cost of leaving, and ``step_texts`` shows these decisions in EXPLAIN. ``running_queries``
knows the queries that run now and the requests for them, ``artifact`` keeps the state of separated queries on storage,
and ``query_moves`` moves queries from server to server.
"""
