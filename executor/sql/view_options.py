"""ALTER VIEW ... SET and RESET (options), and CREATE OR REPLACE VIEW with an equal definition and other options.

Owns: what happens when an option of a view has another value. An option without an entry in ``_EFFECTS`` is read where
it counts (``maintenance_engine``), so that the new text in the catalog is all there is to do. An option of
the view's query gives the view another program over the states that it has (``planner.incremental.programs.carried``):
where they hold less than the view would show, the change is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import View
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.definitions.catalog_changes import change_object
from executor.definitions.unchanged_objects import require_same
from executor.sql.row_policies import alter_row_policy
from executor.sql.view_plans import altered_program, origin_of, require_policy
from executor.transactions.transaction import NewProgram, Transaction
from planner.bind.definitions.view_definitions.view_options import changed_options
from planner.incremental.pace_options import NAMES as PACE_OPTIONS
from planner.incremental.programs.carried import NotCarried, carried
from planner.incremental.programs.documents import encode_program
from planner.incremental.programs.program import Program
from planner.statements.statement import AlterView


class Altered(Struct, frozen=True):
    """A view as it will be, and its program: None for an ordinary view. ``is_new``: the program is another one than
    before."""

    view: View
    program: Program | None
    is_new: bool = False


#: What another value of an option does, beside its text in the catalog. Raises 0A000.
_Effect = Callable[[Core, Catalog, AlterView, Altered], Altered]


def alter_options(core: Core, transaction: Transaction, catalog: Catalog, statement: AlterView) -> None:
    """Gives a view other options. Raises 0A000 for what its states do not allow, 25001 for what cannot be undone."""
    require_same(catalog, statement.before)
    if statement.view == statement.before:
        return
    found = altered_view(core, transaction, catalog, statement)
    if found.is_new:
        assert found.program is not None
        if transaction.explicit:
            names = ", ".join(_changed(statement))
            hint = "Write it outside of BEGIN ... COMMIT."
            message = f"{statement.tag} of the option {names} cannot run inside a transaction block"
            raise SqlError("25001", message, hint=hint)
        transaction.programs.append(NewProgram(found.view, found.program))
    change_object(transaction, catalog, found.view)


def altered_view(core: Core, transaction: Transaction, catalog: Catalog, statement: AlterView) -> Altered:
    """The view that ALTER VIEW makes. Raises 0A000 and changes nothing."""
    found = Altered(statement.view, _program(core, transaction, statement.view))
    effects = dict.fromkeys(effect for name in _changed(statement) for effect in _EFFECTS.get(name, ()))
    for effect in effects:
        found = effect(core, catalog, statement, found)
    return found


def _changed(statement: AlterView) -> tuple[str, ...]:
    return changed_options(statement.before.options, statement.view.options)


def _program(core: Core, transaction: Transaction, view: View) -> Program | None:
    """A view's program as the transaction has it; None for an ordinary one."""
    if not view.continuous:
        return None
    own = [new.program for new in transaction.views if new.view.oid == view.oid]
    own += [new.program for new in transaction.programs if new.view.oid == view.oid]
    if own:
        return own[-1]
    runtime = core.find_view(view.oid)
    return None if runtime is None else runtime.definition.planned


def _replanned(core: Core, catalog: Catalog, statement: AlterView, before: Altered) -> Altered:
    """Another program over the states that there are."""
    if before.program is None or statement.query is None:
        return before
    wanted = altered_program(core, catalog, statement, before.program)
    try:
        program = carried(before.program, wanted, origin_of(core, statement.view))
    except NotCarried as error:
        raise _refused(statement, str(error)) from None
    document = encode_program(program)
    if document == encode_program(before.program):
        return before
    name = f"program-{sha256(repr(document).encode()).hexdigest()[:32]}"
    # The new program calls columns as they are called now.
    return Altered(replace(before.view, program=name, moved=()), program, True)


def _refused(statement: AlterView, reason: str) -> SqlError:
    view = statement.view
    names = [name for name in _changed(statement) if _replanned in _EFFECTS.get(name, ())]
    words = f"the option{'s' if len(names) > 1 else ''} {', '.join(names)}"
    hint = (
        "Write CREATE OR REPLACE VIEW ... WITH (..., restart = true) AS and the query: the view then starts again with"
        " the rows that arrive from then on."
    )
    return SqlError("0A000", f'cannot change {words} of view "{view.name}": {reason}', hint=hint)


def _require_policy(core: Core, catalog: Catalog, statement: AlterView, before: Altered) -> Altered:
    require_policy(core, before.view, before.program)
    return before


def _alter_row_policy(core: Core, catalog: Catalog, statement: AlterView, before: Altered) -> Altered:
    alter_row_policy(core, before.view)
    return before


_OF_QUERY: Final = (_replanned, _require_policy)
_EFFECTS: Final[Mapping[str, tuple[_Effect, ...]]] = {
    "retention": _OF_QUERY,
    "emit": _OF_QUERY,
    "tables": _OF_QUERY,
    "method": (_require_policy,),
    "on_error": (_alter_row_policy,),
    "refresh_policy": (_require_policy,),
    **dict.fromkeys(PACE_OPTIONS, (_require_policy,)),
}
