"""Expressions over composite values: arrays, rows, ranges, multiranges, documents, and the display scales of numbers in
them."""
