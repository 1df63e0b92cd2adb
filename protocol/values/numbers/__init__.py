"""Numbers and boolean: integers, floating point, money, and numeric in text and binary."""
