"""Queries that run pipeline by pipeline, and leave with their state (architecture, section 8; thesis, chapter 6).

``service`` is what a database offers of them. ``choosing`` says which queries do, and ``slicing`` which of their
aggregations read in slices; ``stepwise`` runs them (``on_spark`` keeps its results there), ``forecasting`` estimates
what leaving costs, and ``explaining`` shows all of that. ``running`` knows those that run now and what is asked of
them, ``artifact`` keeps what has left on storage, ``moving`` takes queries from server to server.
"""
