"""Reading at one LSN: from an optimised plan to rows.

``plans`` remembers plans, ``engine_choice`` picks the engine, ``reader`` reads tables, views and system views at one
moment; ``spark_queries`` runs a query as one Spark job. ``catalog_results`` and ``versions`` say what may be kept.
"""
