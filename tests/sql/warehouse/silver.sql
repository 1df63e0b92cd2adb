-- Entities with their history: intervals of validity, look-ups by interval, surrogate keys, latest states.

CREATE MATERIALIZED VIEW silver.companies AS
SELECT md5(c.company::text || '|' || c.at::text) AS id, c.company, c.name, c.active, c.rating, c.founded, c.country,
       c.chief, i.name AS industry, i.sector, rating LIKE 'B%' OR rating IS NULL AS low_grade, c.at AS valid_from,
       coalesce(lead(c.at) OVER w, timestamp '9999-12-31') AS valid_until, lead(c.at) OVER w IS NULL AS current
FROM bronze.companies c
LEFT JOIN raw.industries i ON i.id = c.industry
WINDOW w AS (PARTITION BY c.company ORDER BY c.at, c.batch, c.line);

CREATE MATERIALIZED VIEW silver.securities AS
WITH versions AS (
    SELECT *, coalesce(lead(at) OVER (PARTITION BY symbol ORDER BY at, batch, line), timestamp '9999-12-31') AS until
    FROM bronze.securities
)
SELECT v.symbol, v.kind, v.active, v.name, v.exchange, v.outstanding, v.first_trade, v.dividend,
       c.id AS company_id, c.company, c.name AS company_name, c.sector,
       greatest(v.at, c.valid_from) AS valid_from, least(v.until, c.valid_until) AS valid_until,
       least(v.until, c.valid_until) = timestamp '9999-12-31' AS current
FROM versions v
JOIN silver.companies c
  ON (v.company = c.name OR v.company = lpad(c.company::text, 10, '0'))
 AND c.valid_from < v.until AND c.valid_until > v.at;

-- A field that a change leaves out keeps its value: changes with equal counts of values share the one that began them.
CREATE MATERIALIZED VIEW silver.customer_steps AS
SELECT customer, at, batch, line, action, tax_id, family, given, gender, tier, born, country, city, phone, email,
       count(family) OVER w AS families, count(tier) OVER w AS tiers, count(city) OVER w AS cities,
       count(email) OVER w AS emails, count(country) OVER w AS countries,
       lead(at) OVER (PARTITION BY customer ORDER BY at, batch, line) AS next
FROM bronze.customer_changes
WINDOW w AS (PARTITION BY customer ORDER BY at, batch, line);

CREATE MATERIALIZED VIEW silver.customers AS
SELECT customer, at AS valid_from, coalesce(next, 'infinity') AS valid_until, next IS NULL AS current,
       action <> 'INACT' AS active,
       first_value(tax_id) OVER (PARTITION BY customer ORDER BY at, batch, line) AS tax_id,
       max(family) OVER (PARTITION BY customer, families) AS family,
       first_value(given) OVER (PARTITION BY customer, families ORDER BY at, batch, line) AS given,
       max(tier) OVER (PARTITION BY customer, tiers) AS tier,
       max(country) OVER (PARTITION BY customer, countries) AS country,
       max(city) OVER (PARTITION BY customer, cities) AS city,
       max(email) OVER (PARTITION BY customer, emails) AS email,
       min(born) OVER (PARTITION BY customer) AS born
FROM silver.customer_steps
WHERE next IS NULL OR next > at;

CREATE MATERIALIZED VIEW silver.customer_keys AS
SELECT row_number() OVER (ORDER BY customer, valid_from) AS key, customer, valid_from, valid_until, current
FROM silver.customers;

CREATE MATERIALIZED VIEW silver.accounts AS
WITH events AS (
    SELECT account, customer, broker, tax_status, name, at, batch, line, action FROM bronze.account_changes
    UNION ALL
    SELECT opened.account, opened.customer, NULL, NULL, NULL, closed.valid_from, 1000000, 0, 'CLOSEACCT'
    FROM (SELECT DISTINCT account, customer FROM bronze.account_changes WHERE customer IS NOT NULL) AS opened
    JOIN silver.customers closed ON closed.customer = opened.customer AND NOT closed.active AND closed.current
), filled AS (
    SELECT account, at, batch, line, action, tax_status, name, broker, customer,
           count(broker) OVER w AS brokers, count(customer) OVER w AS owners, count(name) OVER w AS names,
           lead(at) OVER w AS next
    FROM events
    WINDOW w AS (PARTITION BY account ORDER BY at, batch, line)
)
SELECT account, at AS valid_from, coalesce(next, 'infinity') AS valid_until, next IS NULL AS current,
       action <> 'CLOSEACCT' AS active,
       max(customer) OVER (PARTITION BY account, owners) AS customer,
       max(broker) OVER (PARTITION BY account, brokers) AS broker,
       max(name) OVER (PARTITION BY account, names) AS name,
       max(tax_status) OVER (PARTITION BY account) AS tax_status
FROM filled
WHERE next IS NULL OR next > at;

CREATE MATERIALIZED VIEW silver.brokers AS
SELECT row_number() OVER (ORDER BY s.id) AS key, s.id AS broker, s.name, s.branch, s.phone, m.name AS manager,
       count(*) OVER (PARTITION BY s.branch) AS colleagues
FROM bronze.staff s
LEFT JOIN bronze.staff m ON m.id = s.manager
WHERE s.broker;

-- One row a trade: what its events say, and its last status.
CREATE MATERIALIZED VIEW silver.trades AS
SELECT e.trade, e.symbol, e.account, k.name AS kind, k.sells, e.quantity, e.bid, t.placed, t.closed,
       e.status, e.executor, e.price, e.fee, e.commission, e.tax, e.quantity * coalesce(e.price, e.bid) AS volume
FROM (
    SELECT trade, min(at) AS placed, max(at) FILTER (WHERE status IN ('CMPT', 'CNCL')) AS closed, max(at) AS last
    FROM bronze.trade_events
    GROUP BY trade
) AS t
JOIN LATERAL (
    SELECT * FROM bronze.trade_events b
    WHERE b.trade = t.trade AND b.at = t.last
    ORDER BY b.status DESC, b.price DESC NULLS LAST, b.fee LIMIT 1
) AS e ON true
JOIN raw.trade_kinds k ON k.id = e.kind;

CREATE MATERIALIZED VIEW silver.trade_facts AS
SELECT t.trade, t.placed::date AS placed_day, t.closed::date AS closed_day, t.status, t.kind, t.sells, t.quantity,
       t.bid, t.price, t.fee, t.commission, t.tax, t.volume, t.symbol, t.account, a.customer, a.broker, c.tier,
       c.country, s.company, s.sector, r.rate AS tax_rate
FROM silver.trades t
JOIN silver.accounts a ON a.account = t.account AND t.placed >= a.valid_from AND t.placed < a.valid_until
LEFT JOIN silver.customers c
  ON c.customer = a.customer AND t.placed >= c.valid_from AND t.placed < c.valid_until
LEFT JOIN silver.securities s
  ON s.symbol = t.symbol AND t.placed >= s.valid_from AND t.placed < s.valid_until
LEFT JOIN raw.tax_rates r ON r.status = a.tax_status AND r.country = c.country;

CREATE MATERIALIZED VIEW silver.cash_days AS
SELECT account, day, amount, events, sum(amount) OVER (PARTITION BY account ORDER BY day) AS balance,
       day - lag(day) OVER (PARTITION BY account ORDER BY day) AS pause
FROM (
    SELECT account, at::date AS day, sum(amount) AS amount, count(*) AS events
    FROM bronze.cash_events
    GROUP BY account, at::date
) AS days;

CREATE MATERIALIZED VIEW silver.holdings AS
SELECT account, symbol, trade, closed_day, change,
       sum(change) OVER w AS holding,
       coalesce(sum(change) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before,
       row_number() OVER (PARTITION BY account, symbol ORDER BY closed_day DESC, trade DESC) = 1 AS latest
FROM (
    SELECT account, symbol, trade, closed_day, CASE WHEN sells THEN -quantity ELSE quantity END AS change
    FROM silver.trade_facts
    WHERE status = 'CMPT'
) AS moves
WINDOW w AS (PARTITION BY account, symbol ORDER BY closed_day, trade);

CREATE MATERIALIZED VIEW silver.watches AS
SELECT customer, symbol, min(at) FILTER (WHERE added) AS added, max(at) FILTER (WHERE NOT added) AS removed,
       count(*) FILTER (WHERE added) AS times, bool_and(added) AS active
FROM bronze.watch_events
GROUP BY customer, symbol
HAVING count(*) FILTER (WHERE added) > 0;

CREATE MATERIALIZED VIEW silver.prices AS
SELECT p.day, p.symbol, p.close, p.high, p.low, p.volume, s.company, s.sector, s.outstanding * p.close AS value,
       lag(p.close) OVER w AS before, p.close - lag(p.close) OVER w AS change,
       round(100 * (p.close / nullif(lag(p.close) OVER w, 0) - 1), 3) AS percent
FROM bronze.prices p
LEFT JOIN silver.securities s ON s.symbol = p.symbol AND p.day >= s.valid_from AND p.day < s.valid_until
WINDOW w AS (PARTITION BY p.symbol ORDER BY p.day);

CREATE MATERIALIZED VIEW silver.financials AS
SELECT c.company, c.name, f.year, f.quarter, f.revenue, f.earnings, f.eps,
       sum(f.eps) OVER (PARTITION BY c.company ORDER BY f.year, f.quarter, f.at ROWS 3 PRECEDING) AS year_eps,
       make_date(f.year, 3 * f.quarter - 2, 1) AS quarter_begin
FROM bronze.financials f
JOIN silver.companies c
  ON f.company IN (c.name, lpad(c.company::text, 10, '0')) AND f.at >= c.valid_from AND f.at < c.valid_until;

CREATE MATERIALIZED VIEW silver.leads AS
SELECT l.*, EXISTS (
           SELECT 1 FROM silver.customers c
           WHERE c.current AND lower(c.family) = lower(l.family) AND lower(c.given) = lower(l.given)
       ) AS customer,
       concat_ws('+', CASE WHEN l.income > 80000 THEN 'rich' END, CASE WHEN l.age > 45 THEN 'older' END,
                 CASE WHEN l.rating < 600 OR l.income < 20000 THEN 'risky' END) AS labels
FROM bronze.leads l;

-- Data quality: rows whose references are missing; intervals that overlap, and changes soon after others.
CREATE MATERIALIZED VIEW silver.orphans AS
SELECT 'trade without account' AS problem, t.trade::text AS item FROM silver.trades t
WHERE NOT EXISTS (SELECT 1 FROM bronze.account_changes a WHERE a.account = t.account)
UNION ALL
SELECT 'account without customer', a.account::text FROM silver.accounts a
WHERE a.current AND a.customer NOT IN (SELECT customer FROM silver.customers)
UNION ALL
SELECT 'account without broker', a.account::text FROM silver.accounts a
LEFT JOIN silver.brokers b USING (broker)
WHERE a.current AND b.broker IS NULL
UNION ALL
SELECT 'security without company', b.symbol FROM bronze.securities b
WHERE NOT EXISTS (SELECT FROM silver.securities s WHERE s.symbol = b.symbol)
UNION ALL
SELECT 'price of unknown security', p.symbol FROM bronze.prices p
WHERE p.symbol <> ALL (SELECT symbol FROM bronze.securities)
GROUP BY p.symbol;

CREATE MATERIALIZED VIEW silver.overlaps AS
SELECT a.account, a.valid_from, b.valid_from AS other_from
FROM silver.accounts a
JOIN silver.accounts b
  ON a.account = b.account AND a.valid_from < b.valid_from AND b.valid_from < a.valid_until
UNION ALL
SELECT s.customer, s.at, t.at
FROM silver.customer_steps s
JOIN silver.customer_steps t ON t.customer = s.customer AND t.at > s.at AND t.at < s.at + interval '7 days';
