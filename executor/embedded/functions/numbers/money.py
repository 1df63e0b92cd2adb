"""money as cents in bigints: texts by functions, arithmetic by macros with checks in hugeints (cash.c).

Owns: ``FUNCTIONS`` and ``STATEMENTS``, ``money_*`` and ``ms_money_*``.
"""

from __future__ import annotations

from typing import Final

from catalog.values.money import money_text, read_money
from executor.embedded.functions.batches import Functions

FUNCTIONS: Final[Functions] = {
    "money_text": (money_text, "VARCHAR"),
    "money_read": (read_money, "BIGINT"),
}

STATEMENTS: Final = """
CREATE MACRO ms_money(x) AS CASE WHEN x IS NULL OR x BETWEEN -9223372036854775808 AND 9223372036854775807
    THEN CAST(x AS BIGINT) ELSE error('!22003!money out of range') END;
CREATE MACRO ms_money_double(x) AS CASE WHEN isnan(x) OR x < -9223372036854775808::DOUBLE
        OR x >= 9223372036854775808::DOUBLE THEN error('!22003!money out of range')
    ELSE CAST(round_even(x, 0) AS BIGINT) END;
CREATE MACRO ms_money_add(x, y) AS ms_money(CAST(x AS HUGEINT) + y);
CREATE MACRO ms_money_sub(x, y) AS ms_money(CAST(x AS HUGEINT) - y);
CREATE MACRO ms_money_times(x, y) AS ms_money(CAST(x AS HUGEINT) * y);
CREATE MACRO ms_money_whole(x) AS ms_money(CAST(x AS HUGEINT) * 100);
CREATE MACRO ms_money_scaled(x, y) AS ms_money_double(CAST(x AS DOUBLE) * y);
CREATE MACRO ms_money_divided(x, y) AS CASE WHEN y = 0 THEN error('!22012!division by zero')
    ELSE ms_money_double(CAST(x AS DOUBLE) / y) END;
CREATE MACRO ms_money_parts(x, y) AS CASE WHEN y = 0 THEN error('!22012!division by zero')
    ELSE ms_money((abs(CAST(x AS HUGEINT)) // abs(CAST(y AS HUGEINT))) * sign(x) * sign(y)) END;
CREATE MACRO ms_money_ratio(x, y) AS CASE WHEN y = 0 THEN error('!22012!division by zero')
    ELSE CAST(x AS DOUBLE) / y END;
CREATE MACRO ms_money_rounded(x) AS ms_money(CAST(CAST(x AS DECIMAL(38, 2)) * 100 AS HUGEINT));
CREATE MACRO ms_money_numeric(x) AS CAST(CAST(x AS DECIMAL(19, 0)) * 0.01 AS DECIMAL(19, 2));
CREATE MACRO ms_money_cents(x) AS x;
CREATE MACRO ms_money_of_cents(x) AS ms_money(CAST(x AS HUGEINT));
"""
