"""Rules about the order and the numbers of rows: window functions, LIMIT by a computed number, ordered aggregates.

``compute_window_keys`` and ``compute_ntile`` replace windows that an engine lacks. ``number_by_rows`` replaces a LIMIT
that depends on an enclosing row by a filter on row numbers, which ``number_rows`` builds for other rules too.
``forget_orders`` leaves out what nothing sees, ``order_lists`` moves an order into the aggregates that list rows, and
``order_system_rows`` gives system relations PostgreSQL's order.
"""
