"""Statements that define: CREATE, ALTER, DROP, RENAME, COMMENT, GRANT.

``ddl`` dispatches by the kind of parse node. ``relations``, ``alter_table``, ``types``, ``routines``,
``view_definitions`` and ``access`` have one kind of object each; files beside them serve several kinds. Each function
gives a frozen statement of ``planner.statements.definitions`` and changes nothing.
"""
