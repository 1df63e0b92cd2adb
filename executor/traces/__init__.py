"""Traces: lists of runs, each the net change of a relation over an LSN interval (architecture section 3).

``ring`` is a stream's recent rows, ``sealed`` its Parquet files, ``manifest`` what of a view is durable, ``index``
point look-ups, ``parquet`` the files. What a view's states contain in memory is executor/views.
"""
