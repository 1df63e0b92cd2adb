"""What DuckDB lacks or computes otherwise than PostgreSQL: macros in SQL, and functions in Python over batches.

``library.FAMILIES`` and ``library.MACROS`` list the families, and ``library.install`` defines them in a new instance;
``batches`` makes a function over values one over Arrow columns. A family is a file that has ``FUNCTIONS`` or
``STATEMENTS``. Nothing here knows how a call is printed, which ``executor.embedded.printing`` does.
"""
