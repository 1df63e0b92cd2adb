"""One server's database: the services over ``executor.core``, and its start.

1. ``recovery`` brings the tables and the catalog to the log's end.
2. ``reopening`` finds continuous views as they were, or rebuilds them.
3. ``database`` makes the services, hands each what it needs, and commits transactions. No service imports it.
4. ``system_relations`` and ``measures`` show all of that as relations.
"""
