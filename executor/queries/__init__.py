"""Reading at one LSN: from an optimised plan to rows.

``engine_choice`` picks the engine, ``reader`` reads tables, views and system views at one moment, ``spark_queries``
runs a query as one Spark job, and ``stream_query`` answers a query of a stream itself. ``statistics`` estimates sizes.
"""
