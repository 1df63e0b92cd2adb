"""Types that Arrow carries as text in PostgreSQL's output form (``catalog.values.forms``), by family.

That text is their text format. Each file writes and reads one family's binary format; ``form_codec`` makes the codecs.
"""
