"""What a session's run-time parameters may be, and what they are.

``parameters`` lists them, ``parameter_types`` says which values each takes, ``ignored_parameters`` has those of
PostgreSQL that change nothing here. ``settings`` holds one session's values.
"""
