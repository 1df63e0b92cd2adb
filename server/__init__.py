"""The server: sockets, sessions and both query protocols, over ``executor`` and ``protocol``.

The life of a client:

1. ``main`` reads the configuration (``operations.config``); ``serving`` opens the database and listens.
2. ``net.connection`` has the socket; ``login.startup`` authenticates the client.
3. ``session.session`` has the client's settings, prepared statements and transaction, and takes one message at a time.
4. ``messages.simple`` and ``messages.extended`` speak the two query protocols. ``plans.planning`` finds or makes a plan
   of each statement, ``query.execution`` runs it in a thread of ``workers``, and ``session.result_rows`` encodes the
   rows.
5. ``query.copy`` moves the rows of COPY, ``notify`` the notifications of LISTEN.

``fastpath`` answers some requests without these steps; the others can be read without it. ``commands`` is what else
``millstream`` does. This is the only layer that knows asyncio; what may block runs in threads.
"""
