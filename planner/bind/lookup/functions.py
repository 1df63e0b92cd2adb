"""Users' functions that a command names, as DROP FUNCTION f(int) and casts to regprocedure do."""

from __future__ import annotations

from typing import Any

from catalog.catalog import Catalog
from catalog.routines import Function
from catalog.values.errors import SqlError
from catalog.values.types import RECORD_OID, SqlType, by_oid, record
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.search_path import find_functions
from planner.bind.lookup.type_names import display, type_of
from planner.bind.state.bind_state import BindState


def find_function(binding: BindState, item: Any) -> Function:
    """The function that a command names, with its types or alone. Raises 42883, 42725, 3F000 and 42704."""
    *schema, name = names_of(item.objname)
    catalog = binding.context.catalog
    if schema and schema[-1] not in catalog.schemas:
        raise SqlError("3F000", f'schema "{schema[-1]}" does not exist')
    known = find_functions(binding, name, schema[-1] if schema else None)
    if item.args_unspecified:
        if len(known) > 1:
            hint = "Specify the argument list to select the function unambiguously."
            raise SqlError("42725", f'function name "{name}" is not unique', hint=hint)
        if not known:
            raise SqlError("42883", f'could not find a function named "{name}"')
        return known[0]
    kinds = [type_of(binding, kind) for kind in item.objargs or ()]
    found = next((each for each in known if each.types == tuple(kind.oid for kind in kinds)), None)
    if found is None:
        raise SqlError("42883", f"function {name}({', '.join(map(display, kinds))}) does not exist")
    return found


def signature(catalog: Catalog, function: Function) -> str:
    """name(types), as errors name a function."""
    return f"{function.name}({','.join(display(type_by_oid(catalog, oid)) for oid in function.types)})"


def type_by_oid(catalog: Catalog, oid: int) -> SqlType:
    """A type of a function's parameters or result."""
    if oid == RECORD_OID:
        return record()
    return catalog.type_of(oid) or by_oid(oid)
