"""What tables have beside the embedded engine: ``keyed_rows`` and ``table_keys`` read rows by key, ``row_changes``
changes them, ``temporary`` relations are a session's, ``sequences`` give numbers and ``drawing`` asks for them,
``finite`` keeps infinite dates out where they cannot be.
"""
