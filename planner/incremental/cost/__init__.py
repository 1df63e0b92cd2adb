"""What it costs to follow changes.

``changed_rows`` are counts of rows that are inserted, updated and deleted, and ``cardinalities`` estimates them for
each operator (InQP, section 3.1). ``dataflow_costs`` estimates the rows that the nodes of a dataflow read, the time
that they take, and the memory of the rows that are kept. ``work`` is what has been measured.
"""
