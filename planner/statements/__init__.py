"""Statements with resolved names and types: one frozen class for each kind.

``statement`` has queries and changes, ``definitions`` has DDL, ``do_blocks`` has DO. ``walk`` visits the relations and
scalars within any of them.
"""
