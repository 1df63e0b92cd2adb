"""Sockets: the connections of a server, TLS, and the keys by which a client cancels a statement."""
