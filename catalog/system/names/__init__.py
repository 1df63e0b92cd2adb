"""What objects are called: the texts that regclass, format_type(), pg_describe_object() and similar functions show."""
