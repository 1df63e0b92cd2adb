"""Results of queries over system relations alone, kept as long as these have the same rows.

Owns: ``CatalogResults``. A result is a function of the relation, of its leaves' rows, of the parameters and of the time
zone, and is found by these alone: what a session sees of the catalog (temporary objects, search path, role) is in
the leaves' rows, which ``executor.database.system_relations`` gives as the same table while they are the same.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from typing import Final

import pyarrow as pa
from msgspec import Struct

from executor.embedded.connection import Bindings
from planner.algebra.nodes import Relation

_MOST: Final = 256
#: Bytes of a result that is not worth keeping.
_LARGE: Final = 1 << 18
#: Characters of parameters whose digest is the key, and of those that take long to write.
_LONG: Final = 1 << 10
_LONGEST: Final = 1 << 20


class _Result(Struct, frozen=True):
    """A result, and what it was computed from; the leaves' rows go with the version of the catalog that has them."""

    relation: Relation
    leaves: Mapping[str, weakref.ref[pa.Table]]
    rows: pa.Table

    def is_of(self, relation: Relation, leaves: Bindings) -> bool:
        return (
            self.relation is relation
            and self.leaves.keys() == leaves.keys()
            and all(known() is leaves[name] for name, known in self.leaves.items())
        )


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


class CatalogResults:
    """The last results. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, _Result] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        relation: Relation,
        leaves: Bindings,
        parameters: Sequence[object],
        zone: str,
        compute: Callable[[], pa.Table],
    ) -> pa.Table:
        """An immutable relation's rows, computed where they are not known."""
        # Values as they are written: equal numerics may show different decimals.
        written = repr(parameters)
        if len(written) > _LONGEST:
            return compute()
        key = id(relation), zone, written if len(written) <= _LONG else _digest(written)
        with self._lock:
            known = self._results.get(key)
            if known is not None and known.is_of(relation, leaves):
                self._results.move_to_end(key)
                return known.rows
        rows = compute()
        if rows.nbytes <= _LARGE:
            with self._lock:
                known_by = {name: weakref.ref(table) for name, table in leaves.items()}
                self._results[key] = _Result(relation, known_by, rows)
                while len(self._results) > _MOST:
                    self._results.popitem(last=False)
        return rows
