"""Printed values that a printed expression uses more than once, bound to names by a lambda over an array of one struct.

Owns: ``let``. Spark's SQL has no other way to name a value inside an expression.
"""

from __future__ import annotations


def let(bindings: dict[str, str], body: str) -> str:
    """``body`` with v.<name> bound, each evaluated once."""
    fields = ", ".join(f"'{name}', {value}" for name, value in bindings.items())
    return f"TRANSFORM(ARRAY(NAMED_STRUCT({fields})), v -> {body})[0]"
