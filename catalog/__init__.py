"""Names, types, roles and privileges of the database's objects. The catalog neither plans nor runs queries."""
