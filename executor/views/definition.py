"""A continuous view's definition while its server runs: its program, as columns and labels are called now.

Owns: which program and final relation belong to the view's present definition. ALTER changes what they are called, and
never what they mean.
"""

from __future__ import annotations

from catalog.objects import View
from planner.algebra.nodes import Relation
from planner.incremental.programs.labels import with_labels
from planner.incremental.programs.program import Program
from planner.incremental.programs.renaming import with_current_names
from planner.incremental.programs.retargeting import names_within, renamed


class Definition:
    """One view's. Read by any thread; altered under the sequencer's lock."""

    def __init__(self, view: View, planned: Program) -> None:
        """``planned`` is the program as storage has it."""
        self.view = view
        self.planned = planned
        self.program = with_labels(planned, view.labels) if view.labels else planned
        #: How often the labels of enums, or the program, have changed.
        self.relabelled = 0
        self._final: tuple[object, Relation] = (((), 0), self.program.final)
        self._scoped: tuple[Program, Program] | None = None

    @property
    def scoped(self) -> Program:
        """The program for where those of other views are, too: its traces' names begin with the view's oid."""
        if self._scoped is None or self._scoped[0] is not self.program:
            names = names_within(self.program, f"v{self.view.oid}")
            self._scoped = self.program, renamed(self.program, names)
        return self._scoped[1]

    def final(self, view: View) -> Relation:
        """The relation that makes the view's rows, as its definition calls the columns of what it reads."""
        known, relation = self._final
        if known != (key := (view.moved, self.relabelled)):
            relation = with_current_names(self.program.final, view.moved)
            self._final = key, relation
        return relation

    def alter(self, view: View) -> bool:
        """Replaces the definition by one of equal meaning. Whether the program has changed."""
        labels, self.view = self.view.labels, view
        if view.labels == labels:
            return False
        self.program = with_labels(self.planned, view.labels)
        self.relabelled += 1
        return True

    def replan(self, view: View, planned: Program) -> None:
        """The view is shown by another program over its traces."""
        self.view, self.planned = view, planned
        self.program = with_labels(planned, view.labels) if view.labels else planned
        self._final = (((), 0), self.program.final)
        self.relabelled += 1
