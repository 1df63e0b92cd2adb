"""Types whose values every layer carries as texts of one written form, so that equal values are equal texts.

A file per family. Each owns ``READERS``, by type: a text as PostgreSQL reads it -> the text that PostgreSQL writes.
Knows nothing of columns or of the binary formats (``protocol.values``).
"""
