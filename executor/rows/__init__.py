"""Rows that are reached by key, without an engine.

``point_reads`` answers reads of one row, from an index of a continuous view or from ``table_keys``. ``row_changes``
makes one record of many sessions' changes. ``keyed_rows`` has rows in columns, ``value_rows`` as Python values;
``row_shapes`` tells what the rows of a table are like, and ``literal_rows`` what an INSERT's constants become.
"""
