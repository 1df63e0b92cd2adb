"""Value expressions: from parse nodes to ``planner.algebra.nodes``.

``expressions.bind_scalar`` dispatches by the class of the parse node. Operators and functions are
``planner.bind.calls``; ``select_lists`` binds lists of expressions with names, ``stored_expressions`` the texts of
DEFAULT and CHECK.
"""
