"""Expressions over dates, times and intervals: reading, parts, time zones, to_char and to_timestamp."""
