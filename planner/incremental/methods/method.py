"""The interface of a maintenance method, and what methods add to a program.

A method takes an operator of a view's plan, adds the traces that it keeps and the statements that fill them, and gives
a relation over these traces in the operator's place.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from msgspec import Struct, field

from planner.algebra.nodes import Relation
from planner.algebra.walk import Node
from planner.incremental.programs.program import MethodName, State, Statement


class Gathered(Struct):
    """The states of a program, and its statements with the oid of the input whose changes each reads."""

    states: list[State] = field(default_factory=list)
    statements: list[tuple[int, Statement]] = field(default_factory=list)


class Method(Protocol):
    """One way to maintain an operator."""

    #: The name that its statements carry.
    name: ClassVar[MethodName]

    def applies(self, node: Node) -> bool:
        """The guard: whether the method can maintain an operator."""
        ...

    def plan(self, node: Node) -> Relation:
        """The relation that reads the operator's rows from traces, under the operator's columns."""
        ...
