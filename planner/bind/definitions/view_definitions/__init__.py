"""CREATE, ALTER and REPLACE VIEW, and the texts under which views are kept and shown."""
