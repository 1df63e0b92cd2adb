"""Statements that define: tables, streams, views, sequences, indexes, and what ALTER and DROP change of them."""
