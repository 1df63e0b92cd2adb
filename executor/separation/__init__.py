"""Queries that run pipeline by pipeline, and leave with their state (architecture, section 8; thesis, chapter 6).

``choosing`` says which queries do, ``stepwise`` runs them, ``running`` knows those that run now and what is asked of
them, ``artifact`` keeps what has left on storage.
"""
