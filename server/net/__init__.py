"""From the socket to a session: bytes, TLS, and which clients may connect as which role."""
