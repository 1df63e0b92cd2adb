"""Requests that are answered without a worker thread, or without being taken apart.

Each file adds a way past the steps in ``server``'s docstring that gives the same answer: point reads and changes of
single rows by key on the event loop (``point_reads``, ``row_inserts``, ``transaction_blocks``), and requests with the
bytes of an earlier one (``recognised_requests``, ``pipelined_reads``).
"""
