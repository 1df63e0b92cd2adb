"""The server: sockets, sessions and both query protocols, over ``executor`` and ``protocol``.

Reading order: ``main`` and ``serving`` (the process), ``connection`` (one socket), ``startup`` (who comes in),
``session`` (one client), ``simple`` and ``extended`` (the query protocols), ``execution`` (one statement run),
``copying`` (COPY), ``appending`` and ``points`` (what needs no thread), ``planning``, ``prepared`` and ``caches``
(what is remembered), ``parameters`` and ``settings`` (SHOW and SET), ``config`` (what an operator sets), ``commands``
(what else ``millstream`` does), ``logs`` and ``metrics`` (what an operator sees).

The only layer that knows asyncio. One message of a connection is worked on at a time; what may block runs in threads.
"""
