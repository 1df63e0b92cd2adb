"""What one statement changes in tables: the locks that it needs (``lock_needs``), its ``effects``, ON CONFLICT
(``conflicts``), and faster ways for literal rows and for rows found by key."""
