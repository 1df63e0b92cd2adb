"""Numbers: exact numerics, floats, money, spreads, and their formatted texts."""
