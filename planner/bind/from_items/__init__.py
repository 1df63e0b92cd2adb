"""FROM: relations, subqueries, joins and functions, each a relation and the names that it offers.

``from_clause.bind_from`` is the entry.
"""
