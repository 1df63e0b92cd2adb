"""Functions that SQL calls of the session: their values, and what they ask of the server or of other sessions."""
