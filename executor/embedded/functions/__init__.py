"""What DuckDB does not compute as PostgreSQL does: macros, and functions over batches of values (``batches``), a module
for each family.
"""
