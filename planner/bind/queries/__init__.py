"""SELECT, VALUES and set operations: one relation for all clauses of a query.

``select.bind_query`` binds a statement, ``select.bind_select`` any query in it. ``select`` has the order of clauses,
the other files have one clause each.
"""
