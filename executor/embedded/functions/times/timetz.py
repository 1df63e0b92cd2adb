"""timetz in DuckDB: a BIGINT (``catalog.values.times.timetz``), which macros split.

Owns: ``FUNCTIONS`` and ``STATEMENTS``.
"""

from __future__ import annotations

from typing import Final

from catalog.values.times.timestamps import parse_timetz
from executor.embedded.functions.batches import Functions

FUNCTIONS: Final[Functions] = {"moments_timetz": (parse_timetz, "BIGINT")}

STATEMENTS: Final = """
CREATE MACRO ms_timetz(us, west) AS (us + west * 1000000 + 86400000000) * 262144 + west + 131072;
CREATE MACRO ms_timetz_west(x) AS (x & 262143) - 131072;
CREATE MACRO ms_timetz_us(x) AS (x >> 18) - 86400000000 - ms_timetz_west(x) * 1000000;
CREATE MACRO ms_timetz_utc(x) AS (x >> 18) - 86400000000;
CREATE MACRO ms_timetz_time(x) AS CASE WHEN ms_timetz_us(x) = 86400000000
    THEN error('!0A000!the time 24:00:00 is not supported')
    ELSE CAST('00:00' AS TIME) + to_microseconds(ms_timetz_us(x)) END;
CREATE MACRO ms_timetz_offset(west) AS CASE WHEN west > 0 THEN '-' ELSE '+' END
    || lpad(CAST(abs(west) // 3600 AS VARCHAR), 2, '0')
    || CASE WHEN west % 3600 = 0 THEN '' ELSE ':' || lpad(CAST(abs(west) // 60 % 60 AS VARCHAR), 2, '0') END
    || CASE WHEN west % 60 = 0 THEN '' ELSE ':' || lpad(CAST(abs(west) % 60 AS VARCHAR), 2, '0') END;
CREATE MACRO ms_timetz_text(x) AS CASE WHEN ms_timetz_us(x) = 86400000000 THEN '24:00:00'
    ELSE CAST(CAST('00:00' AS TIME) + to_microseconds(ms_timetz_us(x)) AS VARCHAR) END
    || ms_timetz_offset(ms_timetz_west(x));
CREATE MACRO ms_timetz_within(us, west) AS ms_timetz((us % 86400000000 + 86400000000) % 86400000000, west);
CREATE MACRO ms_timetz_moved(x, span) AS ms_timetz_within(
    ms_timetz_us(x) + epoch_us(ms_interval_time(span)), ms_timetz_west(x));
CREATE MACRO ms_timetz_at(x, west) AS ms_timetz_within(ms_timetz_utc(x) - west * 1000000, west);
CREATE MACRO ms_timetz_at_span(x, span) AS CASE
    WHEN datepart('year', span) <> 0 OR datepart('month', span) <> 0 OR datepart('day', span) <> 0
    THEN error('!22023!interval time zone "' || ms_interval_text(span) || '" must not include months or days')
    ELSE ms_timetz_at(x, -(epoch_us(span) // 1000000)) END;
CREATE MACRO ms_west_of(local, instant) AS CAST((epoch_us(instant) - epoch_us(local)) // 1000000 AS BIGINT);
CREATE MACRO ms_timetz_of(local, instant) AS CASE WHEN isfinite(local)
    THEN ms_timetz(epoch_us(CAST(local AS TIME)), ms_west_of(local, instant)) END;
CREATE MACRO ms_timetz_moment(day, x) AS timezone('UTC', CAST(day AS TIMESTAMP) + to_microseconds(ms_timetz_utc(x)));
"""
