"""Relations that are written otherwise before they become nodes, so that what is kept costs less to change.

``expired_rows`` leaves out conditions that hold for all rows which a state has not lost. ``by_facts`` leaves out what
constraints of tables make needless: joins (``known_partners``) and groupings (``known_groups``). ``higher_order`` puts
groupings below their joins with small relations (``join_regions``), ``counted_keys`` lets joins that ask for partners
ask for keys that are counted.
"""
