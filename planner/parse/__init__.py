"""SQL text: PostgreSQL's own parser, and what is done with a text before it.

``parser`` gives parse trees with the positions that a client understands. ``literals`` takes the constants out of a
text. ``string_escapes`` rewrites texts of sessions that have standard_conforming_strings off.
"""
