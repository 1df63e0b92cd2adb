"""One server's database: the services over ``executor.core``, the recovery of its relations, and commits.

1. ``executor.core.core`` opens the files, with the tables and the catalog at the log's end.
2. ``runtimes`` makes the run-time states of streams and views, at a start and later when they are created;
   ``relation_recovery`` does so for all that the catalog has, and ``reopening`` finds views as they were, or rebuilds
   them.
3. ``database`` makes the services and hands each what it needs. No service imports it.
4. ``committer`` commits transactions and makes them visible.
5. ``system_relations`` and ``measures`` show all of that as relations.
"""
