"""Functions of schema ``millstream`` in FROM whose columns depend on their arguments."""

from __future__ import annotations

from typing import Any

from planner.bind.lookup.dotted_names import names_of


def is_own_call(node: Any, name: str) -> bool:
    """Whether a function in FROM is ``millstream.<name>``, which no schema's path leads to."""
    return type(node).__name__ == "FuncCall" and names_of(node.funcname) == ("millstream", name)


def defines_view(node: Any) -> bool:
    """Whether a statement creates a view, materialised or not."""
    materialised = getattr(getattr(node, "objtype", None), "name", "") == "OBJECT_MATVIEW"
    return type(node).__name__ == "ViewStmt" or materialised
