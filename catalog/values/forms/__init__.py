"""Types whose values every layer carries as texts in one form, so that equal values have equal texts.

One file per family. Each owns ``READERS``, by type: functions from a text that PostgreSQL accepts to the text that
PostgreSQL writes. Knows nothing of columns or of the binary formats (``protocol.values``).
"""
