"""Names, types, roles and rights: what the database knows of its objects. It runs no queries and plans none."""
