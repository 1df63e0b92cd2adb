"""Dates, times, timestamps and intervals: their codecs, output styles, and the precision that a type declares."""
