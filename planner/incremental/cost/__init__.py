"""What it costs to follow changes.

``changed_rows`` are counts of rows that are inserted, updated and deleted, and ``cardinalities`` estimates them for
each operator (InQP, section 3.1). ``dataflow_costs`` estimates the rows that the nodes of a dataflow read, and the time
that they take, and ``flow_sizes`` the memory of the rows that are kept. ``usual_changes`` are those for which this is
done, and ``work`` is what has been measured. ``choice`` compares the alternatives of a dataflow, and ``pace`` how
rarely its nodes may go on.
"""
