"""One client's session: its settings (SHOW, SET), its role, its transaction, and the functions that tell of it."""
