-- The raw rows of all sources, parsed, cast, and without duplicates.

CREATE MATERIALIZED VIEW bronze.companies AS
SELECT batch, line,
       to_timestamp(substr(record, 1, 15), 'YYYYMMDD-HH24MISS')::timestamp AS at,
       substr(record, 19, 10)::bigint AS company,
       trim(substr(record, 29, 30)) AS name,
       CASE substr(record, 59, 4) WHEN 'ACTV' THEN true WHEN 'INAC' THEN false END AS active,
       substr(record, 63, 2) AS industry,
       nullif(trim(substr(record, 65, 4)), '') AS rating,
       to_date(nullif(trim(substr(record, 69, 8)), ''), 'YYYYMMDD') AS founded,
       initcap(trim(substr(record, 77, 20))) AS country,
       nullif(trim(substr(record, 97, 25)), '') AS chief
FROM raw.wire
WHERE substr(record, 16, 3) = 'CMP';

CREATE MATERIALIZED VIEW bronze.securities AS
SELECT batch, line,
       to_timestamp(substr(record, 1, 15), 'YYYYMMDD-HH24MISS')::timestamp AS at,
       trim(substr(record, 19, 8)) AS symbol,
       trim(substr(record, 27, 6)) AS kind,
       substr(record, 33, 4) = 'ACTV' AS active,
       trim(substr(record, 37, 30)) AS name,
       trim(substr(record, 67, 6)) AS exchange,
       substr(record, 73, 13)::bigint AS outstanding,
       substr(record, 86, 8)::date AS first_trade,
       trim(substr(record, 94, 12))::numeric(10, 2) AS dividend,
       trim(substr(record, 106)) AS company
FROM raw.wire
WHERE substr(record, 16, 3) = 'SEC';

CREATE MATERIALIZED VIEW bronze.financials AS
SELECT DISTINCT ON (company, year, quarter) batch, line, at, year, quarter, revenue, earnings, eps, company
FROM (
    SELECT batch, line,
           to_timestamp(substr(record, 1, 15), 'YYYYMMDD-HH24MISS')::timestamp AS at,
           substr(record, 19, 4)::integer AS year,
           substr(record, 23, 1)::integer AS quarter,
           trim(substr(record, 24, 17))::numeric(15, 2) AS revenue,
           trim(substr(record, 41, 17))::numeric(15, 2) AS earnings,
           trim(substr(record, 58, 12))::numeric(10, 2) AS eps,
           trim(substr(record, 70)) AS company
    FROM raw.wire
    WHERE substr(record, 16, 3) = 'FIN'
) AS reports
ORDER BY company, year, quarter, batch DESC, line DESC;

CREATE MATERIALIZED VIEW bronze.customer_changes AS
WITH parsed AS (
    SELECT batch, line, at::timestamp AS at, upper(trim(action)) AS action,
           CASE WHEN customer ~ '^C?[0-9]+$' THEN ltrim(customer, 'C')::integer END AS customer,
           nullif(tax_id, '') AS tax_id,
           nullif(initcap(trim(family)), '') AS family,
           nullif(initcap(trim(given)), '') AS given,
           CASE lower(left(gender, 1)) WHEN 'f' THEN 'F' WHEN 'm' THEN 'M' ELSE 'U' END AS gender,
           CASE WHEN tier ~ '^[123]$' THEN tier::smallint END AS tier,
           CASE WHEN born ~ '^\d{4}-\d{2}-\d{2}$' THEN born::date END AS born,
           nullif(upper(country), '') AS country,
           nullif(trim(city), '') AS city,
           nullif(regexp_replace(phone, '[^0-9+]', '', 'g'), '') AS phone,
           nullif(lower(email), '') AS email
    FROM raw.customer_records
)
SELECT DISTINCT ON (customer, at, action) *
FROM parsed
WHERE customer IS NOT NULL
ORDER BY customer, at, action, batch DESC, line DESC;

CREATE MATERIALIZED VIEW bronze.account_changes AS
WITH ranked AS (
    SELECT batch, line, at::timestamp AS at, upper(action) AS action, account::integer AS account,
           nullif(customer, '')::integer AS customer, nullif(broker, '')::integer AS broker,
           nullif(tax_status, '')::smallint AS tax_status, nullif(trim(name), '') AS name,
           row_number() OVER (PARTITION BY account, at, action ORDER BY batch DESC, line DESC) AS place
    FROM raw.account_records
)
SELECT batch, line, at, action, account, customer, broker, tax_status, name
FROM ranked
WHERE place = 1;

CREATE MATERIALIZED VIEW bronze.trade_events AS
SELECT DISTINCT at::timestamp AS at, trade::bigint AS trade, upper(status) AS status, kind,
       trim(security) AS symbol, quantity::integer AS quantity, bid::numeric(8, 2) AS bid,
       account::integer AS account, nullif(executor, '') AS executor,
       nullif(price, '')::numeric(8, 2) AS price, nullif(fee, '')::numeric(10, 2) AS fee,
       nullif(commission, '')::numeric(10, 2) AS commission, coalesce(nullif(tax, '')::numeric(10, 2), 0) AS tax
FROM raw.trade_events;

CREATE MATERIALIZED VIEW bronze.cash_events AS
SELECT at::timestamp AS at, account::integer AS account, amount::numeric(12, 2) AS amount,
       split_part(note, ':', 1) AS reason, split_part(note, ':', 2) AS reference, count(*) AS copies
FROM raw.cash_events
WHERE amount ~ '^-?[0-9]+(\.[0-9]+)?$'
GROUP BY 1, 2, 3, 4, 5;

CREATE MATERIALIZED VIEW bronze.prices AS
SELECT DISTINCT ON (symbol, day) day::date AS day, symbol, close::numeric(8, 2) AS close,
       high::numeric(8, 2) AS high, low::numeric(8, 2) AS low, volume::bigint AS volume
FROM raw.market_events
ORDER BY symbol, day, volume::bigint DESC, close DESC, high DESC, low DESC;

CREATE MATERIALIZED VIEW bronze.watch_events AS
SELECT at::timestamp AS at, customer::integer AS customer, symbol, action = 'ACTV' AS added
FROM raw.watch_events
UNION
SELECT at::timestamp, customer::integer, upper(symbol), false
FROM raw.watch_cancellations;

CREATE MATERIALIZED VIEW bronze.staff AS
SELECT id, nullif(manager, 0) AS manager, given || ' ' || family AS name, job, branch,
       coalesce(phone, 'unknown') AS phone, job = '314' AS broker
FROM raw.staff
WHERE family IS NOT NULL;

CREATE MATERIALIZED VIEW bronze.leads AS
SELECT lead, family, given, city, country, max(income) AS income, max(rating) AS rating, min(age) AS age,
       string_agg(DISTINCT agency, '+' ORDER BY agency) AS agencies
FROM (
    SELECT lead, initcap(family) AS family, initcap(given) AS given, city, upper(country) AS country,
           nullif(income, '')::integer AS income, nullif(rating, '')::integer AS rating,
           nullif(age, '')::integer AS age, 'north' AS agency
    FROM raw.leads_north
    UNION ALL
    SELECT 'S' || lead, initcap(split_part(name, ',', 1)), initcap(trim(split_part(name, ',', 2))), city, 'DE',
           (income_thousands * 1000)::integer, rating, extract(year FROM age(date '2026-01-01', born))::integer, 'south'
    FROM raw.leads_south
) AS both_agencies
GROUP BY lead, family, given, city, country;

CREATE MATERIALIZED VIEW bronze.rejected AS
SELECT 'customer_records' AS source, batch, line, 'customer is no number' AS reason, customer AS value
FROM raw.customer_records WHERE customer !~ '^C?[0-9]+$'
UNION ALL
SELECT 'customer_records', batch, line, 'date of birth', born
FROM raw.customer_records WHERE born <> '' AND born !~ '^\d{4}-\d{2}-\d{2}$'
UNION ALL
SELECT 'wire', batch, line, 'type of record', substr(record, 16, 3)
FROM raw.wire WHERE substr(record, 16, 3) NOT IN ('CMP', 'SEC', 'FIN')
UNION ALL
SELECT 'cash_events', 0, 0, 'amount is no number', amount
FROM raw.cash_events WHERE amount !~ '^-?[0-9]+(\.[0-9]+)?$';

CREATE MATERIALIZED VIEW bronze.arrivals AS
SELECT 'customer_records' AS source, batch, count(*) AS records, min(at) AS first, max(at) AS last
FROM raw.customer_records GROUP BY batch
UNION ALL
SELECT 'account_records', batch, count(*), min(at), max(at) FROM raw.account_records GROUP BY batch
UNION ALL
SELECT 'wire ' || substr(record, 16, 3), batch, count(*), min(substr(record, 1, 8)), max(substr(record, 1, 8))
FROM raw.wire GROUP BY 1, 2;
