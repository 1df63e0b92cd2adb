"""Value codecs: Arrow columns to text or binary fields and back, by type family.

``codec`` defines codecs; other layers call ``registry``, which finds a type's codec. Columns are encoded and decoded
whole: Python sees single values only as a statement's parameters and where a column's fast path finds something
unusual.
"""
