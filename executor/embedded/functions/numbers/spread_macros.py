"""DuckDB macros over spreads of doubles, the states of variances and of statistics of pairs.

Owns: how a state is made from aggregates, how two states merge, and the statistics of a state, each as in PostgreSQL's
float.c.

    [N, Sx, Sxx]                     ms_spread          float8_combine         ms_spread_of_var_samp and its like
    [N, Sx, Sxx, Sy, Syy, Sxy]       ms_paired_spread   float8_regr_combine    ms_spread_of_corr and its like

A list is an array from 1 on. PostgreSQL makes a sum of squares NaN as soon as a value is infinite or NaN, which the sum
of the values still tells when a result is made.
"""

from __future__ import annotations

from typing import Final

from executor.embedded.functions.numbers.numeric_macros import let


def _between(left: int, right: int) -> str:
    """The part of a merged sum of products of distances that comes from the difference of the two states' means."""
    distances = " * ".join(f"(v[{place}] / v[1] - w[{place}] / w[1])" for place in (left, right))
    return f"v[1] * w[1] * {distances} / (v[1] + w[1])"


#: From the first number on, a double has so few digits after the point that they lose nothing beside its whole part. Up
#: to the second, squares of ten thousand million whole parts sum up in 128 bits.
_FAR, _TOO_FAR = 2**27, 2**45

_SQUARES: Final = f"""
CREATE MACRO ms_whole_part(x) AS
    CASE WHEN abs(x) >= {_FAR} AND abs(x) < {_TOO_FAR} THEN CAST(trunc(x) AS BIGINT) ELSE 0::BIGINT END;
CREATE MACRO ms_beside_whole(x) AS x - ms_whole_part(x);
CREATE MACRO ms_whole_squares(n, total, squares, mean, rest) AS
    CAST(squares - mean * total - mean * rest AS DOUBLE) - CAST(rest AS DOUBLE) * rest / n;
CREATE MACRO ms_squares(n, total, squares, beside, rest) AS CASE WHEN n > 0 THEN
    ms_whole_squares(n, total, squares, total // n, total % n) + 2 * n * beside + n * rest END;
CREATE MACRO ms_var_pop_of(n, squares) AS CASE WHEN n > 0 THEN squares / n END;
CREATE MACRO ms_var_samp_of(n, squares) AS CASE WHEN n > 1 THEN squares / (n - 1) END;
CREATE MACRO ms_root_of_squares(x) AS sqrt(CASE WHEN x < 0 THEN 0 ELSE x END);
CREATE MACRO ms_stddev_pop_of(n, squares) AS ms_root_of_squares(ms_var_pop_of(n, squares));
CREATE MACRO ms_stddev_samp_of(n, squares) AS ms_root_of_squares(ms_var_samp_of(n, squares));
"""

_STATES: Final = f"""
CREATE MACRO ms_spread(n, total, spread) AS
    [CAST(n AS DOUBLE), coalesce(total, 0::DOUBLE), coalesce(spread, 0::DOUBLE)];
CREATE MACRO ms_paired_spread(n, x, sxx, y, syy, sxy) AS [CAST(n AS DOUBLE), coalesce(x * n, 0::DOUBLE),
    coalesce(sxx, 0::DOUBLE), coalesce(y * n, 0::DOUBLE), coalesce(syy, 0::DOUBLE), coalesce(sxy, 0::DOUBLE)];
CREATE MACRO ms_merged_spread(states) AS list_reduce(states, lambda v, w:
    [v[1] + w[1], v[2] + w[2], v[3] + w[3] + {_between(2, 2)}]);
CREATE MACRO ms_merged_paired_spread(states) AS list_reduce(states, lambda v, w: [v[1] + w[1],
    v[2] + w[2], v[3] + w[3] + {_between(2, 2)}, v[4] + w[4], v[5] + w[5] + {_between(4, 4)},
    v[6] + w[6] + {_between(2, 4)}]);
"""

_VARIANCES: Final = """
CREATE MACRO ms_spread_over(s, freedom) AS CASE WHEN s[1] > 0 AND freedom > 0
    THEN CASE WHEN isfinite(s[2]) THEN s[3] / freedom ELSE 'NaN'::DOUBLE END END;
CREATE MACRO ms_spread_of_var_pop(s) AS ms_spread_over(s, s[1]);
CREATE MACRO ms_spread_of_var_samp(s) AS ms_spread_over(s, s[1] - 1);
CREATE MACRO ms_spread_of_stddev_pop(s) AS sqrt(ms_spread_over(s, s[1]));
CREATE MACRO ms_spread_of_stddev_samp(s) AS sqrt(ms_spread_over(s, s[1] - 1));
"""

#: For each statistic, its expression over v: the count n, the averages x and y, and the sums of squares and products
#: xx, yy and xy.
_OF_PAIRS: Final = {
    "corr": "ms_corr(v.xx, v.yy, v.xy)",
    "covar_pop": "v.xy / v.n",
    "covar_samp": "ms_covar_samp(v.xy, v.n)",
    "regr_avgx": "v.x",
    "regr_avgy": "v.y",
    "regr_intercept": "ms_regr_intercept(v.xx, v.yy, v.xy, v.x, v.y)",
    "regr_r2": "ms_regr_r2(v.xx, v.yy, v.xy)",
    "regr_slope": "ms_regr_slope(v.xx, v.yy, v.xy)",
    "regr_sxx": "v.xx",
    "regr_sxy": "v.xy",
    "regr_syy": "v.yy",
}
_PARTS: Final = (
    "n: s[1], x: s[2] / s[1], y: s[4] / s[1],"
    " xx: CASE WHEN isfinite(s[2]) THEN s[3] ELSE 'NaN'::DOUBLE END,"
    " yy: CASE WHEN isfinite(s[4]) THEN s[5] ELSE 'NaN'::DOUBLE END,"
    " xy: CASE WHEN isfinite(s[2]) AND isfinite(s[4]) THEN s[6] ELSE 'NaN'::DOUBLE END"
)
_PAIRS: Final = "".join(
    f"CREATE MACRO ms_spread_of_{name}(s) AS CASE WHEN s[1] > 0 THEN {let(_PARTS, body)} END;\n"
    for name, body in _OF_PAIRS.items()
)

STATEMENTS: Final = _SQUARES + _STATES + _VARIANCES + _PAIRS
