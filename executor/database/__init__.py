"""One server's database: what exists (``core``), the services over it (``database``), and its start.

1. ``recovery`` brings the tables and the catalog to the log's end; ``consistency`` compares what files say of each
   other.
2. ``reopening`` finds continuous views as they were, or rebuilds them.
3. ``options`` has what an operator sets, ``memory`` and ``descriptors`` what the system gives.
"""
