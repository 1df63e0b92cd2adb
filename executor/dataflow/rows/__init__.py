"""The rows of a node of a dataflow: a multiset, of which rows are found by hashes of keys, by times and in an order.

1. ``weighted_rows`` are rows that count, and which of them are equal (``value_bits``).
2. ``multiset.Multiset`` keeps them: in ``segments`` of Arrow's, and what came lately as Python's values
   (``recent_rows``).
3. ``hashing`` makes the hashes of keys, ``ordered_values`` numbers in the order of times, and ``order_keys`` the keys
   of places in an order.
"""
