"""SQL text: PostgreSQL's own parser, and the steps that prepare a text for it.

``parser`` gives parse trees with the positions that a client understands. ``literals`` takes the constants out of a
text. ``explained_views`` reads EXPLAIN of CREATE VIEW. ``string_escapes`` rewrites texts of sessions with
standard_conforming_strings off.
"""
