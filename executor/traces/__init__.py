"""Traces: relations with their changes by LSN, in memory and on storage (architecture section 3).

``trace`` says what a trace answers. In memory: ``ring`` has a stream's recent rows, ``state`` the rows of a program's
state; ``keyed_rows`` finds rows by key (``index``, ``sorted_keys``, ``parts``) under what has changed since, and
``bookmark`` says what a reader still asks for. On storage: ``manifest`` names the runs of a view that are durable,
``parquet`` writes and checks files, ``history`` keeps the rows of a stream that is asked to, ``sealed`` those of an
interval for Spark, ``checked`` documents with a checksum. ``layout`` says which columns a stream's rows have.
"""
