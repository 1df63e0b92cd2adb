"""Both query protocols: from a statement's text to encoded rows, and what is kept of statements that come again."""
