"""Which objects a statement names and which it changes, and what therefore follows from statements that failed.

Of PostgreSQL's regression tests, each file is one long session: a table that was refused is missing in a hundred
statements behind it. ``Followed`` keeps the names of what is not the same on both servers; a statement that differs and
names one of these says nothing new. Names are bare words, without schemas; a column's is never one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from pglast import ast
from pglast.parser import ParseError

from catalog.values.errors import SqlError
from planner.parse.parser import nodes, parse

#: Attributes of parse trees whose text is an object's name, and those that hold a qualified name.
_NAMES: Final = (
    "relname",
    "schemaname",
    "rolename",
    "role",
    "portalname",
    "idxname",
    "trigname",
    "rulename",
    "newname",
)
_QUALIFIED: Final = ("funcname", "names", "objname", "domainname", "typeName", "defnames", "object", "objects")
#: Statements of which ``name`` is an object's; elsewhere it is a column, a key or an alias.
_NAMED: Final = (ast.ExecuteStmt, ast.PrepareStmt, ast.DeallocateStmt)
#: What only defines what it names first: the other names in it are read.
_DEFINING: Final = {
    ast.ViewStmt: "view",
    ast.CreateTableAsStmt: "into",
    ast.CreateFunctionStmt: "funcname",
    ast.PrepareStmt: "name",
    ast.DeclareCursorStmt: "portalname",
}
_CHANGING: Final = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt)
_READING: Final = (ast.SelectStmt, ast.ExecuteStmt, ast.ExplainStmt, ast.VariableShowStmt, ast.TransactionStmt)
#: Functions that change what their arguments name.
_EFFECTS: Final = frozenset(("nextval", "setval", "set_config", "pg_advisory_lock"))
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9$]*")


class Objects(Struct, frozen=True):
    """What a statement names, and of it what it changes.

    ``is_anew`` where it makes or drops that, ``is_definition`` where names stay bound to each other, ``setting`` is the
    one that it sets.
    """

    named: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    is_anew: bool = False
    is_definition: bool = False
    setting: str | None = None


def objects(statement: str, common: frozenset[str]) -> Objects:
    """Of one statement, without the names in ``common``, which are built in. Nothing of what does not parse."""
    try:
        trees: list[Any] = [raw.node for raw in parse(statement)]
    except (ParseError, SqlError):
        return Objects()
    named = frozenset(name for tree in trees for name in _named(tree)) - common
    changed = frozenset(name for tree in trees for name in _changed(tree)) - common
    kinds = [type(tree).__name__ for tree in trees]
    is_anew = all(
        kind.startswith(("Create", "View", "Drop", "Declare", "Prepare", "Index", "Composite")) for kind in kinds
    )
    settings = [tree.name or "*" for tree in trees if isinstance(tree, ast.VariableSetStmt)]
    is_definition = is_anew or all(kind.startswith("Alter") for kind in kinds)
    return Objects(named, changed, is_anew, is_definition, settings[0] if settings else None)


def _named(tree: Any) -> Iterator[str]:
    """All names of objects in a tree; texts count where a function or a cast may take them for one."""
    for node in nodes(tree):
        for key in _NAMES:
            name = getattr(node, key, None)
            if isinstance(name, str):
                yield name
        for key in _QUALIFIED:
            yield from _last(getattr(node, key, None))
        if isinstance(node, _NAMED) and node.name is not None:
            yield str(node.name)
        if isinstance(node, ast.CreateFunctionStmt | ast.DoStmt):
            yield from _WORD.findall(" ".join(str(item.sval) for item in nodes(node) if isinstance(item, ast.String)))
        if isinstance(node, ast.FuncCall | ast.TypeCast):
            yield from _texts(node)


def _last(name: Any) -> Iterator[str]:
    """The words of a qualified name, or of a list of such."""
    if isinstance(name, ast.TypeName):
        name = name.names
    if isinstance(name, ast.String):
        yield str(name.sval)
    elif isinstance(name, Sequence) and not isinstance(name, str):
        for part in name:
            yield from _last(part)


def _texts(node: ast.FuncCall | ast.TypeCast) -> Iterator[str]:
    """Names within constants that are a call's arguments or cast."""
    for item in (node.arg,) if isinstance(node, ast.TypeCast) else node.args or ():
        if isinstance(item, ast.A_Const) and isinstance(item.val, ast.String):
            yield from _WORD.findall(str(item.val.sval))


def _changed(tree: Any) -> Iterator[str]:
    """What a statement leaves otherwise than it was, if it succeeds."""
    key = _DEFINING.get(type(tree))
    if key is not None:
        defined = getattr(tree, key)
        yield from (
            (defined,) if isinstance(defined, str) else _named(defined) if key in ("view", "into") else _last(defined)
        )
        return
    if not isinstance(tree, (*_READING, *_CHANGING, ast.VariableSetStmt)):
        yield from _altered(tree)
        return
    for node in nodes(tree):
        yield from _effects(node)


def _effects(node: Any) -> Iterator[str]:
    """What one node of a query changes."""
    target = node.rel if isinstance(node, ast.IntoClause) else node.relation if isinstance(node, _CHANGING) else None
    if target is not None:
        yield str(target.relname)
    if isinstance(node, ast.FuncCall) and list(_last(node.funcname))[-1] in _EFFECTS:
        yield from _texts(node)


def _altered(tree: Any) -> Iterator[str]:
    """What a utility statement makes or changes; not the schema and types that it uses, nor the roles that get a
    privilege."""
    if isinstance(tree, ast.CreateStmt | ast.IndexStmt):
        yield from (str(node.relname) for node in nodes(tree) if isinstance(node, ast.RangeVar))
        yield from (tree.idxname,) if isinstance(tree, ast.IndexStmt) and tree.idxname else ()
        return
    whole = tree.objects if isinstance(tree, ast.GrantStmt) else tree
    schemas = {node.schemaname for node in nodes(whole) if isinstance(node, ast.RangeVar)}
    yield from (name for name in _named(whole) if name not in schemas)


@dataclass(slots=True)
class Followed:
    """What is not the same on both servers since a statement failed on one of them, or gave something else."""

    names: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    #: Names that one statement made or changed together: views and tables, the two sides of a key.
    links: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: What was changed since the transaction's begin, which is undone where it fails.
    block: set[str] = field(default_factory=set)
    #: Whether one server has given up the transaction that the other is in, and whether it had.
    is_torn: bool = False
    was_torn: bool = False

    def begin(self) -> None:
        """A new session on both."""
        self.settings.clear()
        self.block.clear()
        self.is_torn = self.was_torn = False

    def explains(self, found: Objects) -> bool:
        """Whether a statement cannot be the same on both."""
        return self.is_torn or bool(self.settings) or any(map(self._is_known, found.named))

    def note(self, found: Objects, *, is_equal: bool, is_done: bool, states: tuple[int, int]) -> None:
        """After a statement on both; ``is_done`` without an error on both, ``states`` of their transactions."""
        if found.setting is not None:
            self._note_setting(found.setting, is_equal)
        elif not is_equal or any(map(self._is_known, found.named - found.changed)):
            self.names |= found.changed
        elif is_done and found.is_anew:
            self.names -= found.changed
        if is_done and found.is_definition:
            self._link(found)
        self.block |= found.changed
        self.is_torn = states[0] != states[1]
        self.was_torn |= self.is_torn
        if self.was_torn:
            self.names |= self.block
        if states == (0, 0):
            self.block.clear()
            self.was_torn = False

    def _is_known(self, name: str) -> bool:
        return name in self.names or not self.names.isdisjoint(self.links[name])

    def _link(self, found: Objects) -> None:
        for name in found.changed:
            self.links[name] |= found.named - {name}
            for other in found.named - {name}:
                self.links[other].add(name)

    def _note_setting(self, setting: str, is_equal: bool) -> None:
        if not is_equal:
            self.settings.add(setting)
        elif setting == "*":
            self.settings.clear()
        else:
            self.settings.discard(setting)
