"""Plans of statements and what is kept of their results, for all sessions.

``planning`` makes plans from SQL text and keeps them. ``point_reads`` recognises the plans that read one row by a key
and encodes the row. ``answer_cache`` keeps the bytes of answers while their inputs do not change, ``output_styles``
says on which settings a statement's text output depends.
"""
