"""What exists in one open database: files, catalog, tables, streams and continuous views.

``core`` opens the files and has what reads what. ``consistency`` compares what the files say of each other,
``recycled_log`` keeps what the log has forgotten, and ``table_recovery`` brings tables and catalog to the log's end.
``past_tables`` has tables as they stood when rows of streams were committed.
``statistics`` estimates the sizes of what a plan reads, and ``spark_queries`` runs a query as one Spark job.
``plans``, ``versions`` and ``catalog_results`` are caches of reads;
``memory`` and ``descriptors`` divide what the operating system gives, and ``periodic`` runs a background thread.
"""
