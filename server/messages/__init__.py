"""What each message of the protocol does.

``handlers`` is the table from messages to functions: ``simple`` has the simple query protocol, ``extended`` the
extended one, and ``server.query.copy`` the messages of COPY.
"""
