"""Strings, JSON and enums, and the types whose text is made of hexadecimal digits (bytea, uuid)."""
