"""What a definition was bound to, and must still be so when it is carried out."""

from __future__ import annotations

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, Sequence
from executor.transactions.transaction import OutdatedError


def require_same(catalog: Catalog, before: CatalogObject) -> None:
    """Raises 40001 where another transaction has changed an object since a statement was bound."""
    if catalog.objects.get(before.oid) != before:
        raise OutdatedError


def require_free(catalog: Catalog, sequences: tuple[Sequence, ...]) -> None:
    """Raises 40001 where another transaction has taken the oids of new sequences since a statement was bound."""
    if sequences and sequences[0].oid != catalog.next_oid:
        raise OutdatedError
