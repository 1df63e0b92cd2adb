"""Peers of ``bench.nexmark_peers``: programs of other streaming engines, each run in a process of its own.

Each reads a request as JSON a line and answers it with a line (``bench.peers.peer.Request`` and ``Answer``). These
programs import nothing of this project, since they run in environments that have only the engine.
"""
