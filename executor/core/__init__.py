"""What exists in one open database: files, catalog, tables, streams and continuous views.

``core`` opens the files and has what reads what; ``consistency`` compares what the files say of each other, and
``recycled_log`` keeps what the log has forgotten. ``plans``, ``versions`` and ``catalog_results`` are caches of reads;
``memory`` and ``descriptors`` divide what the operating system gives, and ``periodic`` runs a background thread.
"""
