"""Copies of another server's streams, filled from that server's log: ``replica`` follows the log, and ``enums`` keeps
the types that the streams' columns need."""
