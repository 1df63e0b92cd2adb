"""One client's session: its role, transaction, prepared statements, portals and cursors, and the functions that show
it."""
