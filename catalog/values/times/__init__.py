"""Dates, times and intervals: their texts as PostgreSQL reads them, and the patterns of to_char() and to_date().

A text of a date or a time goes through ``time_fields`` (what its words and numbers are) and ``timestamps`` (the value
that they name). A text that a pattern describes goes through ``patterns``, ``pattern_fields`` and ``pattern_reading``.
"""
