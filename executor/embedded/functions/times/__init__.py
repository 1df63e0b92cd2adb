"""Dates, times and intervals: reading, formatting, time zones, timetz."""
