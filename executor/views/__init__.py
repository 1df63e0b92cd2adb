"""Continuous views while their server runs (architecture, sections 1, 3 and 5; thesis, chapter 4).

How a read gets a view's rows:

1. ``runtime.ViewRuntime.result`` is asked for the rows at an LSN; ``location`` says whether they are here at all.
2. ``runtime.ViewRuntime.advance`` brings each path (``progress``) to that LSN: ``path_runner`` runs its statements over
   the rows that came since, and the states (``executor.traces.state``) take the runs in.
3. The caller evaluates the final relation (``definition``) over the states' snapshots; the result is kept until
   something changes.

``index`` finds one row of a result by its key, for ``executor.key_access``. ``executor.subscriptions`` reads the
changes of the rows.

``needed_rows`` are those of the states that a path's statements can meet beside a few rows. ``failing_rows`` finds the
rows of a batch on which statements fail, where the view's ``on_error`` asks for it.
``storage`` is what of a view is on the disk, ``expiry`` drops rows that the retention has done with, ``pins`` says
which older LSNs are read, ``failure`` which errors become a view's value. ``executor.upkeep`` maintains views in the
background.
"""
