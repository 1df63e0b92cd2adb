"""Functions about the catalog, privileges and sequences, and those by which a session acts on the server."""
