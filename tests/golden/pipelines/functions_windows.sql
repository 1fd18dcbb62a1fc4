SET function_files = 'pricing.py';

CREATE TABLE clicks (
    user TEXT,
    at TIMESTAMP,
    n INT,
    WATERMARK FOR at AS at - INTERVAL '10' SECOND
) WITH (connector = 'files', path = 'in/*.json', format = 'json');

CREATE TABLE per_minute (start TIMESTAMP, middle DOUBLE, clicks BIGINT, all STRING)
WITH (connector = 'memory');

INSERT INTO per_minute
SELECT window.start, middle(n), count(*), joined(user, n)
FROM clicks, LATERAL numbers(1) AS one(i)
GROUP BY window(at, '1 minute')
HAVING middle(n) > 1;
