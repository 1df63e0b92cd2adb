"""Queries and expressions as PostgreSQL's catalogs show them (ruleutils.c): with every name, cast and parenthesis.

``queries`` and ``expressions`` repeat PostgreSQL's analysis of a parse tree and give ``trees``: each column with its
item of FROM, each call with the function that it means, each explicit or implicit cast. ``item_names`` gives the items
of FROM different names; ``printer`` and ``layout`` write the text.

A construct that is not known here in every detail raises ``AsWrittenError``; the catalogs then show the user's own
text.
"""

from __future__ import annotations


class AsWrittenError(Exception):
    """These modules have no text for a construct."""
