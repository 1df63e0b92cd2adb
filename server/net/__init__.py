"""Sockets: the connections of a server, TLS, and the process numbers and keys by which clients cancel statements."""
