"""The parts of a table's or stream's definition, collected while it is read.

Owns: ``Parts``, which gives constraints PostgreSQL's names, and the attributes of a constraint.
"""

from __future__ import annotations

import itertools
from typing import Any

from msgspec import Struct, field

from catalog.objects import Check, ColumnDefinition, Index, UniqueKey
from catalog.values.errors import SqlError
from catalog.values.identifiers import made_name


class Attributes(Struct, frozen=True):
    """[NOT] DEFERRABLE, INITIALLY DEFERRED or IMMEDIATE; None where it is not said."""

    deferrable: bool | None = None
    deferred: bool | None = None

    @property
    def is_deferrable(self) -> bool:
        """Also where only INITIALLY DEFERRED says it."""
        return bool(self.deferred) if self.deferrable is None else self.deferrable


class Parts(Struct):
    """What has been read of a definition so far. ``owned``: columns with a sequence, and its options or its model."""

    table: str
    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[UniqueKey] = field(default_factory=list)
    foreign: list[tuple[Any, tuple[str, ...], Attributes]] = field(default_factory=list)
    checks: list[tuple[str | None, Any]] = field(default_factory=list)
    generations: list[tuple[str, Any]] = field(default_factory=list)
    copied_checks: list[Check] = field(default_factory=list)
    copied_keys: list[UniqueKey] = field(default_factory=list)
    copied_indexes: list[Index] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    owned: dict[str, Any] = field(default_factory=dict)
    altered: bool = False

    def name(self, given: str | None, *words: str) -> str:
        """A constraint's name: the given one, or PostgreSQL's choice made unique."""
        if given is not None:
            if given in self.names:
                raise SqlError("42710", f'constraint "{given}" for relation "{self.table}" already exists')
            self.names.add(given)
            return given
        *columns, label = words
        names = (made_name(self.table, "_".join(columns), f"{label}{number or ''}") for number in itertools.count())
        found = next(name for name in names if name not in self.names)
        self.names.add(found)
        return found

    def column(self, name: str) -> ColumnDefinition | None:
        return next((column for column in self.columns if column.name == name), None)
