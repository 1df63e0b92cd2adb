"""Bytes to events and back: the server side of PostgreSQL's v3 protocol, without sockets, asyncio or an engine.

Reading order: ``messages`` (what a client says), ``decoder`` (bytes to messages), ``machine`` (which message is legal
when), ``encoder`` (what a server says), ``values`` (Arrow columns to fields and back, by type family),
``datarow`` and ``rowmessages`` (a result's rows, column by column), ``copy`` (COPY data in and out).

Imports only ``catalog.values``, besides pyarrow and numpy.
"""
