"""The names of errors' conditions in PL/pgSQL: in handlers and in RAISE.

Owns: the names that migrations use (plerrcodes.h); others are written as SQLSTATE 'state'.
"""

from __future__ import annotations

from typing import Final

from catalog.errors import unsupported

#: Two digits are a class, none are all.
_CONDITIONS: Final = {
    "others": "",
    "division_by_zero": "22012",
    "invalid_text_representation": "22P02",
    "data_exception": "22",
    "integrity_constraint_violation": "23",
    "not_null_violation": "23502",
    "foreign_key_violation": "23503",
    "unique_violation": "23505",
    "check_violation": "23514",
    "dependent_objects_still_exist": "2BP01",
    "invalid_schema_name": "3F000",
    "syntax_error_or_access_rule_violation": "42",
    "syntax_error": "42601",
    "insufficient_privilege": "42501",
    "wrong_object_type": "42809",
    "undefined_column": "42703",
    "undefined_function": "42883",
    "undefined_table": "42P01",
    "undefined_object": "42704",
    "duplicate_column": "42701",
    "duplicate_function": "42723",
    "duplicate_schema": "42P06",
    "duplicate_table": "42P07",
    "duplicate_object": "42710",
    "invalid_table_definition": "42P16",
    "invalid_object_definition": "42P17",
    "object_not_in_prerequisite_state": "55000",
    "object_in_use": "55006",
    "lock_not_available": "55P03",
    "feature_not_supported": "0A000",
    "raise_exception": "P0001",
}


def state_of(name: str) -> str:
    """The SQLSTATE that a condition is, or its beginning. Raises 0A000 for a name that is not known here."""
    if name in _CONDITIONS:
        return _CONDITIONS[name]
    if len(name) == 5 and name.isalnum() and name == name.upper():
        return name
    raise unsupported(f"the condition {name} in DO", "Write SQLSTATE and its five characters.")
