"""Operators applied to expressions, and what their operands' types need: ranges and arrays of several dimensions."""
