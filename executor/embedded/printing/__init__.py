"""DuckDB's dialect of our algebra (``executor.printing``).

1. ``dialect.DuckPrinter.print_relation`` walks the relation with the shared printer and writes types, literals, leaves
   and windows itself.
2. Calls go to ``scalar_functions.FUNCTIONS`` and ``aggregates.AGGREGATES``, the allow-lists, whose builders lie by
   family: ``numbers``, ``times``, ``composites``, ``textual``. ``casts.cast`` prints casts.
3. A builder that needs the printer again (a cast of an element, the text of a field) asks ``entry_points.EntryPoints``.
4. ``generator`` turns the nodes into text.
"""
