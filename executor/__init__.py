"""From plans to rows: one database, its log, its tables, streams and continuous views, and two engines.

The life of a row that a client inserts into a stream:

1. ``sql.session`` has the statement's plan; ``streams.appender`` (single rows) or ``sql.copy_from`` (batches)
   takes the rows.
2. ``commit`` gives them an LSN and writes them to the log; the client hears when they are on the disk.
3. ``streams.runtime`` keeps them in memory, as the delta that views of the stream have not seen yet.
4. ``upkeep.maintenance`` maintains views in the background, on the embedded engine (``embedded``) or on Spark
   (``spark``). Both implement ``engine``; what they make are runs of ``traces``.
5. A read (``queries.reader``) brings a view (``views``) to its own LSN first, and computes the rest. Rows of views that
   take long to compute are kept, and follow the changes of their inputs (``maintained``).

``key_access`` reads and changes single rows by key without an engine. ``separation`` has queries that stop and go on,
``moving`` and ``cluster`` have views and queries on several servers.
"""
