"""Queries and expressions as PostgreSQL's catalogs show them (ruleutils.c): every name, cast and parenthesis written.

``queries`` and ``expressions`` make of a parse tree what PostgreSQL's analysis makes of it (``trees``): each column
with the item of FROM that it is of, each call with what it means, each cast, whether somebody wrote it or not.
``item_names`` gives the items of FROM different names, ``printer`` and ``layout`` write the whole.

What is not known here in every detail raises ``AsWrittenError``: its text is then what the user wrote.
"""

from __future__ import annotations


class AsWrittenError(Exception):
    """What these modules have no text of."""
