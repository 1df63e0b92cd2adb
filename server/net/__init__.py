"""Sockets: one client's connection, TLS, and the keys by which a client cancels a statement."""
