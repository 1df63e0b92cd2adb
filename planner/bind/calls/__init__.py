"""Operators, functions and aggregates applied: which one PostgreSQL would choose, and the call of ours that it is.

``functions.bind_function`` binds a call by name: it tries users' functions (``user_functions``), aggregates and window
functions (``aggregation``), functions about the catalog and session (``system``), and those with rules of their own
(``families``), before the plain ones of ``overloading``. ``operator_calls.operation`` binds operators.
"""
