"""Dates, times and intervals: their texts as PostgreSQL reads them, and the patterns of to_char() and to_date().

A text of a date or a time goes through ``time_fields`` (its words and numbers), ``moment_texts`` (what they mean
together; a zone's part in ``zone_texts``) and ``timestamps`` (the value of a type). A text that a pattern describes
goes through ``patterns``, ``pattern_fields`` and ``pattern_reading``.
"""
