"""What it costs to follow changes. ``changes`` are counts of rows that are inserted, updated and deleted,
``cardinalities`` estimates them for each operator (InQP, section 3.1), and ``dataflow_costs`` the rows that the nodes
of a dataflow read, and the time that they take; ``work`` is what has been measured."""
