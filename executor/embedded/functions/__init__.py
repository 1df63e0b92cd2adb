"""Functions that DuckDB lacks or computes differently from PostgreSQL: macros in SQL, and Python functions over
batches.

``library.FAMILIES`` and ``library.MACROS`` list the families, and ``library.install`` defines them in a new instance;
``batches`` turns a function over values into one over Arrow columns. A family is a file with ``FUNCTIONS`` or
``STATEMENTS``. Nothing here knows how a call is printed (``executor.embedded.printing``).
"""
