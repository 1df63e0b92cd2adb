"""Texts, bytea, and types whose values are texts: regular expressions, bit strings, addresses, hstore."""
