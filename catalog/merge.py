"""Merges the catalog changes of two concurrent transactions that changed different objects.

Locks keep transactions from changing the same object or taking the same name, so a conflict is 40001.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import TypeVar

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.routines import Functions, by_name, every
from catalog.values.errors import SqlError

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


def merged(base: Catalog, mine: Catalog, theirs: Catalog) -> Catalog:
    """``theirs`` with the changes from ``base`` to ``mine``. Raises 40001 if both changed one object."""
    if theirs is base:
        return mine
    if mine is base:
        return theirs
    objects = _mapping(base.objects, mine.objects, theirs.objects)
    names = {(item.schema, item.name): oid for oid, item in objects.items()}
    if len(names) < len(objects):
        raise _conflict()
    return replace(
        theirs,
        objects=objects,
        names=MappingProxyType(names),
        version=max(mine.version, theirs.version) + 1,
        next_oid=max(mine.next_oid, theirs.next_oid),
        schemas=_mapping(base.schemas, mine.schemas, theirs.schemas),
        types=_mapping(base.types, mine.types, theirs.types),
        roles=_one(base.roles, mine.roles, theirs.roles),
        rights=_mapping(base.rights, mine.rights, theirs.rights),
        functions=_functions(base.functions, mine.functions, theirs.functions),
        extensions=_mapping(base.extensions, mine.extensions, theirs.extensions),
        defaults=_one(base.defaults, mine.defaults, theirs.defaults),
        temporary=mine.temporary,
    )


def _mapping(
    base: Mapping[_Key, _Value], mine: Mapping[_Key, _Value], theirs: Mapping[_Key, _Value]
) -> Mapping[_Key, _Value]:
    if mine is base:
        return theirs
    changed = {key: value for key, value in mine.items() if base.get(key) is not value}
    gone = base.keys() - mine.keys()
    if any(theirs.get(key) is not base.get(key) and theirs.get(key) != mine.get(key) for key in (*changed, *gone)):
        raise _conflict()
    return MappingProxyType({key: value for key, value in {**theirs, **changed}.items() if key not in gone})


def _functions(base: Functions, mine: Functions, theirs: Functions) -> Functions:
    if mine is base:
        return theirs
    before, own, others = ({item.oid: item for item in every(each)} for each in (base, mine, theirs))
    return by_name(_mapping(before, own, others).values())


def _one(base: _Value, mine: _Value, theirs: _Value) -> _Value:
    if mine is base or mine == theirs:
        return theirs
    if theirs is not base and theirs != base:
        raise _conflict()
    return mine


def _conflict() -> SqlError:
    return SqlError("40001", "could not serialize access due to a concurrent definition")
