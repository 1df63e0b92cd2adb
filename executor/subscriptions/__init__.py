"""What arrives while a query waits for it.

``arrival_scan`` waits for the rows of a stream, ``change_scan`` for the changes of a continuous view. ``change_feed``
finds these changes, once for all readers of a view; ``view_watch`` tells clients that a view has changed.
"""
