"""Limits on the length of statements, in characters. Reading the configuration needs them without the parser."""

from typing import Final

#: The limit for a client's statement, unless the configuration sets another.
LIMIT: Final = 1 << 20
#: The limit for any parsed text; a definition's text is part of a statement.
MOST: Final = 1 << 24
