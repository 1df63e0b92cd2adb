"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE and COPY, and what WITH makes of them."""
