"""Expressions as the catalog keeps them: the texts of defaults, checks and generated columns.

Owns: users' types in them, named by oid, and their functions, named with their schemas, so that search_path does not
change what a text means.
"""

from __future__ import annotations

import copy
from typing import Any

from pglast.ast import String
from pglast.stream import RawStream

from catalog.postgres import functions
from planner.bind.context import Binding
from planner.bind.search_path import find_functions
from planner.bind.typenames import BY_OID, find_declared, names_of
from planner.parse.parser import nodes


def kept_text(binding: Binding, tree: Any) -> str:
    """An expression as text."""
    tree = copy.deepcopy(tree)
    for node in nodes(tree):
        found = find_declared(binding, names_of(node.names)) if type(node).__name__ == "TypeName" else None
        if found is not None:
            node.names = (String(BY_OID), String(str(found.oid)))
        if type(node).__name__ == "FuncCall" and (schema := _schema_of(binding, names_of(node.funcname))):
            node.funcname = (String(schema), *node.funcname)
    return str(RawStream()(tree))


def _schema_of(binding: Binding, names: tuple[str, ...]) -> str:
    """The schema of a user's function that a bare name means; '' where there is none, or PostgreSQL has one, too."""
    found = find_functions(binding, names[-1], None) if len(names) == 1 else []
    return found[0].schema if found and not functions(names[-1]) else ""
