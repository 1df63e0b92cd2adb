"""Changes of tables that views read WITH (tables = 'arrival') and that the log cannot undo.

Owns: the refusal. Rows of a stream that such a view does not have yet meet the table as it stood at their commit, which
is found from the table as it is and from what the log says has changed (``executor.core.past_tables``). The log has the
rows of a table that is written anew, and not what they were before, and it calls columns as they were called.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.objects import View
from catalog.values.errors import unsupported
from executor.core.core import Core
from executor.rows.row_shapes import schema_of
from executor.transactions.transaction import Transaction
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.incremental.programs.program import Program
from planner.statements.definitions import AlterTable


def require_past_rows(core: Core, transaction: Transaction, statement: AlterTable, is_in_place: bool) -> None:
    """Raises 0A000 for a table whose rows are logged anew, or whose columns that a view uses get other names or
    types. ``is_in_place``: columns are dropped, renamed or added where the rows are."""
    if statement.rows is None:
        return
    oid, after = statement.before.oid, schema_of(statement.table)
    types = dict(zip(after.names, after.types, strict=True))
    # Changes of before are logged by the columns of before, so that the table is logged with all rows then.
    is_anew = not is_in_place or transaction.writer().has_changed(statement.before)
    for view, program in _views(core, transaction):
        nodes = (node for static in program.arrival_statics for node in walk(static.relation))
        scans = [node for node in nodes if isinstance(node, Scan) and node.oid == oid]
        used = {source for scan in scans for source in scan.sources}
        lost = any(types.get(field.name) != field.type for field in schema_of(statement.before) if field.name in used)
        if scans and (lost or is_anew):
            what = f'{statement.tag} of "{statement.before.name}", which view "{view.name}" reads as rows arrive,'
            rule = "It renames a column that the view uses." if lost else "It writes the rows of the table anew."
            instead = "Drop the view first, and create it again afterwards."
            if is_in_place and not lost:
                rule = "The transaction has changed rows of the table already."
                instead = "Commit these changes first."
            raise unsupported(what, instead, rule=rule)


def _views(core: Core, transaction: Transaction) -> Iterator[tuple[View, Program]]:
    """The views that the transaction sees, with those that it has created."""
    seen = transaction.sees(core.catalog).objects
    programs = [(runtime.view, runtime.program) for runtime in core.runtimes()]
    programs += [(new.view, new.program) for new in transaction.views]
    return ((view, program) for view, program in programs if view.oid in seen)
