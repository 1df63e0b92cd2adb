"""Traces: lists of runs, each the net change of a relation over an LSN interval (architecture section 1).

``run`` is the run, ``ring`` a stream's recent rows, ``sealed`` its Parquet files, ``manifest`` what of a view is
durable, ``state`` its states as durable and memory-only runs, ``index`` point look-ups, ``parquet`` the files.
"""
