"""What one statement changes in tables: the locks that it needs, its ``effects``, ON CONFLICT (``conflicts``), and the
faster ways for literal rows and for rows that are found by key.
"""
