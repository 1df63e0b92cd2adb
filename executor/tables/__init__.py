"""What tables have beside the embedded engine: ``temporary`` relations, ``sequences`` and the ``effect_calls`` that
draw from them, and ``infinite_dates``, which nothing but tables holds.
"""
