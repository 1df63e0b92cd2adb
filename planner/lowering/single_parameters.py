"""Makes each parameter occur once in a statement, and turns expressions over parameters only into parameters.

    Filter(R, a = oid($1) or b = oid($1))  =  Filter(R, a = $1 or b = $2) over the parameters (oid($1), oid($1))

An engine that plans a statement once for all values of its parameters may do so only for those that it meets once:
DuckDB takes the type of the second for unknown. Only what gives a value for any arguments leaves its place, since it is
computed even where no row would have asked for it.

For the printer, once no rule runs any more.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.types import SqlType
from planner.algebra.construction import volatility
from planner.algebra.failures import may_raise
from planner.algebra.nodes import Call, Case, Cast, Literal, Parameter, Relation, Scalar
from planner.algebra.walk import children, kinds_of, transform, transform_relations
from planner.scales.nested import has_scales

_COMPUTED: Final = (Call, Case, Cast)
_PARAMETERS: Final = kinds_of(Parameter)


def separate_parameters(relation: Relation) -> tuple[Relation, tuple[Scalar, ...]]:
    """An equal relation in which each parameter occurs once, and its parameters as expressions over the given ones."""
    arguments: list[Scalar] = []

    def placed(argument: Scalar, kind: SqlType) -> Parameter:
        arguments.append(argument)
        return Parameter(len(arguments) - 1, kind)

    def change(node: Any) -> Any:
        if isinstance(node, Parameter):
            return placed(node, node.type)
        if isinstance(node, _COMPUTED) and _is_computed_before(node):
            return placed(transform(node, lambda item: _argument(item, arguments), _PARAMETERS), node.type)
        return node

    return transform_relations(relation, change, _PARAMETERS), tuple(arguments)


def _argument(node: Any, arguments: list[Scalar]) -> Any:
    return arguments[node.index] if isinstance(node, Parameter) else node


def _is_computed_before(node: Call | Case | Cast) -> bool:
    """Whether a node's value depends on parameters only, is held exactly by its type, and may be computed before the
    query."""
    values = [child for child in children(node) if isinstance(child, Parameter | Literal)]
    return (
        len(values) == len(children(node))
        and not any(
            has_scales(kind) or kind.name == "jsonpath" for kind in (node.type, *(item.type for item in values))
        )
        and not may_raise(node)
        and volatility(node) == "immutable"
    )
