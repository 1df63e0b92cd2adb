"""From plans to rows: one database, its log, its tables, streams and continuous views, and two engines.

The life of a row that a client inserts into a stream:

1. ``sql.session`` has the statement's plan; ``streams.appender`` (single rows) or ``sql.copy_from`` (batches)
   takes the rows.
2. ``commit`` gives them an LSN and writes them to the log; the client hears when they are on the disk.
3. ``streams.runtime`` keeps them in memory, as the delta that views of the stream have not seen yet.
4. ``views.maintenance`` moves views on in the background, by the embedded engine (``embedded``) or by Spark
   (``spark``). Both implement ``engine``, and what they make are runs of a ``trace``.
5. A read (``queries.reader``) brings a view to its own LSN first, and computes the rest.

``rows`` has what is read and changed by key without an engine, ``separation`` queries that stop and go on, ``moving``
and ``cluster`` views and queries on several servers.
"""
