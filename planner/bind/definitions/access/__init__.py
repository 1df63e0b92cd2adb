"""Roles, and what they may do: membership, ownership, GRANT and default privileges."""
