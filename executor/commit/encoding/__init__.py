"""Transaction records as bytes.

``payloads`` lays out a record's parts. The rows of a part are blocks of one of three encodings: ``frames`` for few
rows, ``packed_columns`` for many, and Arrow's IPC stream for what neither carries. Readers know all three.
"""
