"""The sequencer and the log: where a transaction becomes durable and visible (architecture section 4).

1. A session describes its transaction as a record (``records``), which ``encoding`` turns into bytes. Batches of a long
   COPY are written ahead (``Sequencer.spool``), and the record only refers to them; it alone makes them count.
2. ``sequencer`` gives the record an LSN; ``writer_queue`` is what waits for the writer thread, and a ``ticket`` tells
   the session when its transaction is done. Transactions that build on each other form a ``chain``.
3. ``log`` appends the record to a file (``segment``, ``segment_pool``) and syncs it; ``control`` notes how far the disk
   has the log.
4. The sequencer publishes the record to its consumers, and resolves the ticket.
5. After a restart ``recovery`` reads the records back. Another server reads them by ``log_follower``.

``files`` has the operations on files that fail on a full disk, ``checked_lines`` small files that grow line by line.
Nothing here knows what the rows mean.
"""
