"""DDL of stored tables: ``creation``, ``altering`` of columns in place, and the catalog's document in the same file."""
