"""The names of objects in the texts of regclass, format_type(), pg_describe_object() and similar functions."""
