"""Value codecs: Arrow columns to text or binary fields and back, one file per type family.

``codec`` says what a codec is; ``registry`` finds the one of a type and is what other layers call. Columns are encoded
and decoded whole: Python sees single values only as parameters of a statement and where a column's fast path found
something unusual.
"""
