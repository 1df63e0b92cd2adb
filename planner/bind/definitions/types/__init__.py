"""CREATE, ALTER and DROP of types: enums, composite types and domains."""
