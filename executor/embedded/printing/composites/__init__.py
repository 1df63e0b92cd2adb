"""Expressions over values made of others: arrays, rows, ranges, multiranges, documents, and numbers' display scales in
them.
"""
