"""Types that Arrow carries as text in PostgreSQL's written form (``catalog.values.forms``), by family.

Their text format is that text. Each file writes and reads the binary format of one family; ``form_codec`` makes codecs
of these.
"""
