"""Types of expressions: PostgreSQL's chapter "Type Conversion".

``resolution`` has PostgreSQL's algorithms over oids: which operator, function or common type is chosen, and which casts
exist. ``coercion`` turns an expression of one type into another; ``literals`` and ``relative_dates`` read constants,
``domains``, ``rows``, ``row_types``, ``named_oids`` and ``carried_types`` have what these kinds of types need.
https://www.postgresql.org/docs/15/typeconv.html
"""
