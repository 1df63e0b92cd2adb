"""What arrives while a query waits for it.

``arrival_scan`` waits for the rows of a stream, ``change_scan`` for the changes of a continuous view or a table.
``feeds`` has the feed of each relation, for all of its readers: ``view_feed`` finds the changes of a view, and
``table_feed`` reads those of a table. ``change_watch`` tells clients that a view or a table has changed.
"""
