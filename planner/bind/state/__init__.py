"""What is known and remembered while one statement is bound, handed down from function to function.

``context`` has what the session knows (``Context``) and what the bind remembers (``Binding``). ``scope`` has the names
that FROM offers, ``levels`` where a query stands and which WITH queries it sees (by ``with_names``), ``environment``
where an expression stands and what is allowed there.
"""
