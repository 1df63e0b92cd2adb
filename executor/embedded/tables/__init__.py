"""The tables of one server in a DuckDB file: ``store`` has them, ``writing`` is their writer's transaction.

A statement's ``effects`` are computed (``upserting``), checked (``constraints``, ``unique_keys``, ``deferral``) and
applied (``changes``); ``defining`` and ``altering`` make and change tables; ``journal`` takes it all back. Changes of
rows by key (``keyed``, ``row_plans``) do without DuckDB, which gets them later (``unsettled``, ``backlog``).
"""
