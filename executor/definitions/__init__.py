"""Changes of the catalog within a transaction, and the catalog as the log and the tables' file keep it.

1. ``definition_locks`` says which locks a statement that defines something takes.
2. ``catalog_changes`` adds, changes and drops relations; ``user_types``, ``routines``, ``extensions`` and ``roles`` do
   so for what else a catalog has. ``unchanged_objects`` refuses what another transaction has changed meanwhile.
3. ``stored_catalog`` applies these changes again when a database is opened.
"""
