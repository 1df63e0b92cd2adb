"""Limits on the length of statements, in characters. Reading the configuration needs them without the parser."""

from typing import Final

#: A client's statement, unless the server is configured otherwise.
LIMIT: Final = 1 << 20
#: Any text that is parsed: what definitions keep has been a part of a statement.
MOST: Final = 1 << 24
