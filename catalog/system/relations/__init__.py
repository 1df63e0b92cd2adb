"""Millstream's own rows of the system relations, in addition to PostgreSQL's: one file per family of relations.

A function with a relation's name yields its rows from one version of the catalog; ``catalog.system`` lists all of them.
"""
