"""Relations whose rows follow the changes of tables, states and views, in memory.

1. ``maintained.MaintainedRows`` keeps one relation's rows at an LSN. It fills the nodes of the relation's dataflow
   (``planner.incremental.dataflow``) from one moment's rows, and brings them forward by the changes of its inputs.
2. ``operators`` runs a node: its change from the changes and rows of the nodes below it.
3. ``rows`` are a node's rows. ``first_rows``, ``time_bounds`` and ``recursion`` have what such nodes keep beside,
   ``first_of_partitions`` the rows among which an engine chooses, ``ordered_windows`` those that a change of a window
   reaches, and ``group_sums`` adds up states of groups.
4. ``view_rows`` are the rows of a view that another dataflow keeps. ``node_rows`` finds the rows of any node.

What is kept here is a cache: it can be made again of the tables and states at any time, and is given up where a change
does not fit it.
"""
