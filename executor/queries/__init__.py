"""Reading at one LSN: from an optimised plan to rows.

``engine_choice`` picks the engine, ``reader`` reads tables, views and system views at one moment (``moments``),
``view_reader`` has the rows of one view at it, ``spark_queries`` runs a query as one Spark job, and ``stream_query``
answers a query of a stream itself. ``present_rows`` are those of now, for feeds and other servers. ``statistics``
estimates sizes.

The rows of views that take long to compute are kept: ``maintained_views`` decides which, ``expanded_views`` gives a
view's relation over tables and states alone, and ``kept_rows`` brings the rows forward by the inputs' changes.
``read_costs`` measures both ways, and ``fills`` makes the rows of large views in the background.
"""
