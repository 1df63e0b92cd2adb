"""Reads and changes of single rows by key, without an engine.

``point_sources`` finds the source of a point read: ``view_indexes`` for a continuous view, ``table_keys`` for a table.
``row_changes`` commits the single-row changes of many sessions as one record.
"""
