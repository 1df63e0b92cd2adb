"""COPY between a client, or a file of the server, and the executor."""
