-- Roots, powers, exponentials and logarithms show the decimals that their results have.
SELECT exp(3.0)::text, exp(1.0), exp(3.0), ln(2.0), sqrt(2.0), power(2.0, 0.5), log(2.0), log(2.0, 64.0), exp(0.5)::text, power(2.0,3.0)::text, sqrt(4.0)::text, sqrt(12.25)::text, 10.0 ^ 2, exp(-5.0), exp(10.5), ln(1000.0), ln(0.5), sqrt(123456789.0), sqrt(0.0001), power(1.5, 10), power(100.0, -2), log(1.0001), sqrt(0), exp(0.0);
CREATE TABLE tr (x numeric, y numeric(8,2), k int);
INSERT INTO tr VALUES (1.50, 2.25, 1), (100, 0.01, 2), (0.00012300, 99999.99, 3), (12345.678900, 1, 4), (NULL, NULL, 5);
SELECT k, ln(x), ln(y), sqrt(x), sqrt(y), log(x), log(y), power(x, 2), power(x, 0.5), power(y, 1.5), log(2.0, x), power(2, k::numeric) FROM tr ORDER BY k;
SELECT k, sqrt(x)::text, sqrt(k::numeric), exp(k::numeric)::text || 'a' FROM tr ORDER BY k;
SELECT round(sqrt(2.0), 3), sqrt(2.0) + 1, sqrt(16.0) * 2.0 FROM tr LIMIT 1;
SELECT log(1.0), log(10.0, 1), ln(1.00), power(0.0, 2), exp(0.000);
DROP TABLE tr;
SELECT ln(1.10), ln(1.1000000001), ln(0.9), ln(0.95), ln(0.8999), ln(1.01), ln(1.001), ln(0.999), log(1.10), log(0.9), log(2.0, 1.1), log(1.1, 2.0), log(1.01, 1.1);
