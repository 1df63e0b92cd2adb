"""Rows without an engine: what the rows of a table look like, and how one is found by its key.

``point_reads`` recognises reads of one row. ``keyed_rows`` has rows in columns, ``value_rows`` as Python values;
``row_shapes`` tells what the rows of a table are like, and ``literal_rows`` what an INSERT's constants become. Indexes
and single-row changes are in ``executor.key_access``.
"""
