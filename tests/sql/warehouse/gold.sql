-- What the business looks at.

CREATE MATERIALIZED VIEW gold.trade_days AS
SELECT d.day, d.week, f.tier, count(*) AS trades, count(DISTINCT f.customer) AS customers, sum(f.volume) AS volume,
       sum(f.fee + f.commission) AS revenue, avg(f.volume)::numeric(14, 4) AS mean_volume
FROM silver.trade_facts f
JOIN raw.calendar d ON d.day = f.placed_day
WHERE NOT d.holiday
GROUP BY d.day, d.week, f.tier;

CREATE MATERIALIZED VIEW gold.customer_days AS
SELECT customer, closed_day, count(*) AS trades, sum(volume) FILTER (WHERE sells) AS sold,
       sum(volume) FILTER (WHERE NOT sells) AS bought, sum(tax) AS tax,
       sum(round(tax_rate * commission, 2)) AS tax_due
FROM silver.trade_facts
WHERE status = 'CMPT'
GROUP BY customer, closed_day
HAVING sum(volume) > 100;

CREATE MATERIALIZED VIEW gold.top_securities AS
SELECT symbol, sum(volume) AS volume, count(*) AS trades
FROM silver.trade_facts
WHERE status = 'CMPT'
GROUP BY symbol
ORDER BY volume DESC, symbol
LIMIT 7;

CREATE MATERIALIZED VIEW gold.top_of_sectors AS
SELECT sector, symbol, volume, place
FROM (
    SELECT sector, symbol, sum(volume) AS volume,
           row_number() OVER (PARTITION BY sector ORDER BY sum(volume) DESC, symbol) AS place
    FROM silver.trade_facts
    GROUP BY sector, symbol
) AS ranked
WHERE place <= 3;

CREATE MATERIALIZED VIEW gold.year_ranges AS
SELECT symbol, day, close,
       max(high) OVER year AS year_high, min(low) OVER year AS year_low,
       first_value(close) OVER year AS year_before,
       CASE WHEN high = max(high) OVER year THEN 'high' WHEN low = min(low) OVER year THEN 'low' END AS record
FROM silver.prices
WINDOW year AS (PARTITION BY symbol ORDER BY day RANGE BETWEEN interval '1 year' PRECEDING AND CURRENT ROW);

CREATE MATERIALIZED VIEW gold.moving_averages AS
SELECT symbol, day, close,
       avg(close) OVER (PARTITION BY symbol ORDER BY day ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS mean_5,
       avg(close) OVER (PARTITION BY symbol ORDER BY day ROWS BETWEEN 19 PRECEDING AND CURRENT ROW) AS mean_20,
       sum(volume) OVER (PARTITION BY symbol ORDER BY day ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS volume_around,
       nth_value(close, 2) OVER (PARTITION BY symbol ORDER BY day ROWS 9 PRECEDING) AS second
FROM silver.prices;

CREATE MATERIALIZED VIEW gold.crossings AS
SELECT symbol, day, mean_5, mean_20, sign(mean_5 - mean_20) AS side
FROM (
    SELECT *, lag(mean_5) OVER (PARTITION BY symbol ORDER BY day) AS last_5,
           lag(mean_20) OVER (PARTITION BY symbol ORDER BY day) AS last_20
    FROM gold.moving_averages
) AS averages
WHERE (mean_5 > mean_20) <> (last_5 > last_20);

CREATE MATERIALIZED VIEW gold.sector_shares AS
SELECT sector, sum(volume) AS volume, round(sum(volume) / sum(sum(volume)) OVER (), 6) AS share,
       rank() OVER (ORDER BY sum(volume) DESC) AS place
FROM silver.trade_facts
GROUP BY sector;

CREATE MATERIALIZED VIEW gold.revenue AS
SELECT b.branch, b.name AS broker, date_trunc('month', f.closed_day)::date AS month,
       grouping(b.branch, b.name, date_trunc('month', f.closed_day)) AS level,
       sum(f.commission) AS commission, sum(f.fee) AS fees, count(*) AS trades
FROM silver.trade_facts f
JOIN silver.brokers b USING (broker)
WHERE f.status = 'CMPT'
GROUP BY ROLLUP (b.branch, b.name, date_trunc('month', f.closed_day));

CREATE MATERIALIZED VIEW gold.trade_cube AS
SELECT tier, country, kind, count(*) AS trades, sum(quantity) AS quantity, max(volume) AS largest,
       count(DISTINCT symbol) AS symbols
FROM silver.trade_facts
GROUP BY GROUPING SETS ((tier, country), (country, kind), (kind), ());

CREATE MATERIALIZED VIEW gold.cohorts AS
WITH first_trades AS (
    SELECT customer, date_trunc('month', min(placed_day)) AS cohort FROM silver.trade_facts GROUP BY customer
)
SELECT c.cohort::date AS cohort,
       12 * extract(year FROM age(date_trunc('month', f.placed_day), c.cohort))
       + extract(month FROM age(date_trunc('month', f.placed_day), c.cohort)) AS months_later,
       count(DISTINCT f.customer) AS customers, sum(f.volume) AS volume
FROM silver.trade_facts f
JOIN first_trades c ON c.customer = f.customer
GROUP BY 1, 2;

CREATE MATERIALIZED VIEW gold.open_orders AS
SELECT t.trade, t.symbol, t.account, t.quantity, t.bid, t.placed, t.quantity * p.close AS value,
       (SELECT max(day) FROM bronze.prices) - t.placed::date AS age
FROM silver.trades t
LEFT JOIN LATERAL (
    SELECT close FROM silver.prices p WHERE p.symbol = t.symbol ORDER BY day DESC LIMIT 1
) AS p ON true
WHERE t.closed IS NULL;

CREATE MATERIALIZED VIEW gold.open_inventory AS
SELECT day, opened, closed, sum(opened - closed) OVER (ORDER BY day) AS open
FROM (
    SELECT day, sum(opened) AS opened, sum(closed) AS closed
    FROM (
        SELECT placed::date AS day, 1 AS opened, 0 AS closed FROM silver.trades
        UNION ALL
        SELECT closed::date, 0, 1 FROM silver.trades WHERE closed IS NOT NULL
    ) AS moves
    GROUP BY day
) AS days;

CREATE MATERIALIZED VIEW gold.alerts AS
SELECT r.id AS rule, p.symbol, p.day, p.close, r.low, r.high,
       CASE WHEN p.close < r.low THEN 'below' ELSE 'above' END AS side
FROM raw.alert_rules r
JOIN silver.prices p
  ON p.symbol = r.symbol AND p.day BETWEEN r.valid_from AND r.valid_until AND p.close NOT BETWEEN r.low AND r.high;

CREATE MATERIALIZED VIEW gold.watched_alerts AS
SELECT w.customer, c.family, a.symbol, count(*) AS alerts, max(a.day) AS last,
       array_agg(DISTINCT a.rule ORDER BY a.rule) AS rules
FROM gold.alerts a
JOIN silver.watches w ON w.symbol = a.symbol AND a.day >= w.added AND (w.removed IS NULL OR a.day < w.removed)
JOIN silver.customers c ON c.customer = w.customer AND c.current
GROUP BY w.customer, c.family, a.symbol;

CREATE MATERIALIZED VIEW gold.organisation AS
WITH RECURSIVE chart AS (
    SELECT id, name, branch, 1 AS level, ARRAY[id] AS path FROM bronze.staff WHERE manager IS NULL
    UNION ALL
    SELECT s.id, s.name, s.branch, c.level + 1, c.path || s.id
    FROM bronze.staff s
    JOIN chart c ON s.manager = c.id
    WHERE s.id <> ALL (c.path)
)
SELECT id, name, branch, level, path FROM chart;

CREATE MATERIALIZED VIEW gold.team_results AS
SELECT m.id, m.name, m.level, count(*) AS trades, sum(f.commission) AS commission
FROM gold.organisation m
JOIN gold.organisation o ON m.id = ANY (o.path)
JOIN silver.trade_facts f ON f.broker = o.id
WHERE f.status = 'CMPT'
GROUP BY m.id, m.name, m.level;

-- Reconciliation: what one source has and another lacks.
CREATE MATERIALIZED VIEW gold.unpaid_trades AS
SELECT trade::text AS trade, account FROM silver.trades WHERE status = 'CMPT'
EXCEPT
SELECT reference, account FROM bronze.cash_events WHERE reason = 'trade';

CREATE MATERIALIZED VIEW gold.unmatched AS
SELECT 'lost' AS problem, lost.* FROM (
    SELECT trade, account, quantity FROM silver.trades EXCEPT ALL SELECT trade, account, quantity FROM silver.trade_facts
) AS lost
UNION ALL
SELECT 'doubled', doubled.* FROM (
    SELECT trade, account, quantity FROM silver.trade_facts EXCEPT ALL SELECT trade, account, quantity FROM silver.trades
) AS doubled;

CREATE MATERIALIZED VIEW gold.both_sides AS
SELECT account, symbol FROM silver.trades WHERE sells
INTERSECT
SELECT account, symbol FROM silver.trades WHERE NOT sells;

CREATE MATERIALIZED VIEW gold.portfolios AS
SELECT h.account, a.customer, a.broker, count(*) AS positions, sum(h.holding * p.close) AS value
FROM silver.holdings h
JOIN silver.accounts a ON a.account = h.account AND a.current
JOIN LATERAL (
    SELECT close FROM silver.prices p WHERE p.symbol = h.symbol ORDER BY p.day DESC LIMIT 1
) AS p ON true
WHERE h.latest AND h.holding <> 0
GROUP BY h.account, a.customer, a.broker;

CREATE MATERIALIZED VIEW gold.customer_overview AS
SELECT c.customer, c.family, c.given, c.tier, coalesce(a.accounts, 0) AS accounts, p.value, k.balance,
       coalesce(w.watched, 0) AS watched, (SELECT max(f.placed_day) FROM silver.trade_facts f
                                           WHERE f.customer = c.customer) AS last_trade
FROM silver.customers c
LEFT JOIN (
    SELECT customer, count(*) AS accounts FROM silver.accounts WHERE current AND active GROUP BY customer
) AS a ON a.customer = c.customer
LEFT JOIN (
    SELECT customer, sum(value) AS value FROM gold.portfolios GROUP BY customer
) AS p ON p.customer = c.customer
LEFT JOIN (
    SELECT a.customer, sum(d.amount) AS balance
    FROM silver.cash_days d JOIN silver.accounts a ON a.account = d.account AND a.current
    GROUP BY a.customer
) AS k ON k.customer = c.customer
LEFT JOIN (
    SELECT customer, count(*) AS watched FROM silver.watches WHERE active GROUP BY customer
) AS w ON w.customer = c.customer
WHERE c.current;

CREATE MATERIALIZED VIEW gold.dormant AS
SELECT customer, family, tier, country FROM silver.customers c
WHERE c.current AND c.active
  AND NOT EXISTS (
      SELECT 1 FROM silver.trade_facts f
      WHERE f.customer = c.customer AND f.placed_day > (SELECT max(placed_day) - 60 FROM silver.trade_facts)
  );

CREATE MATERIALIZED VIEW gold.price_earnings AS
SELECT p.symbol, p.day, p.close, f.year_eps, round(p.close / nullif(f.year_eps, 0), 2) AS price_earnings
FROM silver.prices p
JOIN LATERAL (
    SELECT year_eps FROM silver.financials f
    WHERE f.company = p.company AND f.quarter_begin <= p.day
    ORDER BY f.quarter_begin DESC, f.year_eps LIMIT 1
) AS f ON true;

CREATE MATERIALIZED VIEW gold.broker_ranks AS
SELECT b.branch, b.broker, b.name, coalesce(r.commission, 0) AS commission,
       rank() OVER w AS place, dense_rank() OVER w AS dense_place,
       ntile(3) OVER (PARTITION BY b.branch ORDER BY r.commission DESC NULLS LAST, b.broker) AS third,
       coalesce(r.commission, 0) - lag(coalesce(r.commission, 0)) OVER (w ROWS UNBOUNDED PRECEDING) AS gap
FROM silver.brokers b
LEFT JOIN (
    SELECT broker, sum(commission) AS commission FROM silver.trade_facts WHERE status = 'CMPT' GROUP BY broker
) AS r ON r.broker = b.broker
WINDOW w AS (PARTITION BY b.branch ORDER BY coalesce(r.commission, 0) DESC, b.broker);

CREATE MATERIALIZED VIEW gold.cash_and_trades AS
SELECT coalesce(c.account, t.account) AS account, c.paid, t.worth, c.paid + t.worth AS difference
FROM (
    SELECT account, sum(amount) AS paid FROM bronze.cash_events WHERE reason = 'trade' GROUP BY account
) AS c
FULL JOIN (
    SELECT account, sum(CASE WHEN sells THEN -volume ELSE volume END) AS worth
    FROM silver.trade_facts WHERE status = 'CMPT' GROUP BY account
) AS t ON t.account = c.account
WHERE c.paid IS DISTINCT FROM -t.worth;

CREATE MATERIALIZED VIEW gold.audit AS
SELECT 'bronze' AS layer, 'trade_events' AS relation, count(*) AS rows, max(at) AS newest FROM bronze.trade_events
UNION ALL
SELECT 'silver', 'customers', count(*), max(valid_from) FROM silver.customers
UNION ALL
SELECT 'silver', 'trade_facts', count(*), max(placed_day) FROM silver.trade_facts
UNION ALL
SELECT 'gold', 'portfolios', count(*), NULL FROM gold.portfolios
UNION ALL
SELECT 'silver', problem, count(*), NULL FROM silver.orphans GROUP BY problem
UNION ALL
SELECT 'bronze', source, sum(records)::bigint, max(last)::timestamp FROM bronze.arrivals
WHERE source NOT LIKE 'wire%' GROUP BY source;
