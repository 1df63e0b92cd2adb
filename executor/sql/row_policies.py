"""Whether a view can have the policy for rows that fail which its option ``on_error`` asks for.

Owns: the errors of CREATE VIEW and ALTER VIEW. ``executor.views.failing_rows`` follows the policy.
"""

from __future__ import annotations

from catalog.objects import View
from catalog.values.errors import SqlError, unsupported
from executor.core.core import Core
from planner.explain.scalars import deparse
from planner.incremental.programs.program import Program, bounds_joins
from planner.incremental.programs.row_failures import computed_at_reads


def require_row_policy(view: View, program: Program) -> None:
    """Raises 0A000 where an expression over the stream's rows is computed when the view is read, so that its error is
    none of a row that arrives."""
    found = None if view.on_error == "fail" else computed_at_reads(program)
    if found is None:
        return
    instead = "Compute it in a subquery of the stream's rows alone, or leave on_error out."
    rule = "The view keeps rows of the stream and computes the expression from them when it is read."
    if program.live:
        instead = "Write WITH (tables = 'arrival') or WITH (tables = 'frozen'), or leave on_error out."
        rule = "The view reads tables below its grouping as they are, and computes the expression when it is read."
    raise unsupported(f"on_error = '{view.on_error}' of the expression {deparse(found)}", instead, rule=rule)


def alter_row_policy(core: Core, view: View) -> None:
    """An existing view gets its options. Raises 0A000, and 55000 where it has failed and cannot go on, since the rows
    behind its state are gone."""
    runtime = core.find_view(view.oid)
    if runtime is None or runtime.view.on_error == view.on_error:
        return
    if view.on_error != "fail" and bounds_joins(runtime.program):
        what = f"on_error = '{view.on_error}' of a view whose joined streams leave its state by their times"
        raise unsupported(what, "Drop the view and create it with the option.")
    require_row_policy(view, runtime.program)
    if runtime.error is None or runtime.away is not None:
        return
    hint = "CREATE OR REPLACE VIEW ... WITH (restart = true) starts it again."
    if runtime.error.policy is None:
        raise SqlError("55000", f'view "{view.name}" cannot go on: {runtime.error.error.message}', hint=hint)
    for progress in runtime.paths:
        try:
            for oid in progress.path.inputs:
                core.streams[oid].feed.rows(progress.durable, core.sequencer.visible)
        except SqlError as error:
            if error.sqlstate != "72000":
                raise
            message = f'view "{view.name}" cannot go on: the log no longer has the rows behind LSN {progress.durable}'
            raise SqlError("55000", message, hint=hint) from error
