"""Expressions as the catalog keeps them: the texts of defaults, checks and generated columns.

Owns: users' types in them, named by oid, so that neither search_path nor a new name changes what a text means.
"""

from __future__ import annotations

import copy
from typing import Any

from pglast.ast import String
from pglast.stream import RawStream

from planner.bind.context import Binding
from planner.bind.typenames import BY_OID, find_declared, names_of


def kept_text(binding: Binding, tree: Any) -> str:
    """An expression as text."""
    tree = copy.deepcopy(tree)
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack += node
        elif hasattr(node, "__slots__"):
            found = find_declared(binding, names_of(node.names)) if type(node).__name__ == "TypeName" else None
            if found is not None:
                node.names = (String(BY_OID), String(str(found.oid)))
            stack += [getattr(node, name, None) for name in node.__slots__]
    return str(RawStream()(tree))
