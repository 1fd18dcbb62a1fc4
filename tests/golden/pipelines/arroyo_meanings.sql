-- Functions whose meaning in Arroyo is another one than in Spark, with the answers of DataFusion.
CREATE TABLE rows (
    id INT, a BIGINT, b INT, x DOUBLE, y DOUBLE, d DECIMAL(10, 2), s TEXT, n INT, xs INT[],
    xss INT[][], at TIMESTAMP, WATERMARK FOR at
) WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');

CREATE TABLE numbers (id INT, whole BIGINT, product BIGINT, real DOUBLE, mixed DOUBLE,
    exact DECIMAL(12, 4), log DOUBLE, "not a number" BOOLEAN, sum DOUBLE)
WITH (connector = 'memory');
INSERT INTO numbers
SELECT id, a / b, a * 3 / b, x / y, a / 2.0, d / 2, log(abs(a)), isnan(x / y), 0.1 + 0.2 FROM rows;

CREATE TABLE texts (id INT, skipped TEXT, l TEXT, ln TEXT, r TEXT, rn TEXT, su TEXT, sn TEXT, sm TEXT,
    rocket TEXT)
WITH (connector = 'memory');
INSERT INTO texts
SELECT id, concat(s, NULL, '-', id), left(s, -2), left(s, n), right(s, -2), right(s, n),
    substr(s, -1, 4), substr(s, n), substr(s, n, 5), chr(128640)
FROM rows;

CREATE TABLE times (id INT, weekday INT, second INT, since TIMESTAMP) WITH (connector = 'memory');
INSERT INTO times
SELECT id, extract(dow FROM at), date_part('second', at), from_unixtime(a) FROM rows;

CREATE TABLE arrays (id INT, position INT, removed INT[], sorted INT[], size INT, sizes INT, dims INT[],
    "dims of xs" INT[], depth INT, halves INT[])
WITH (connector = 'memory');
INSERT INTO arrays
SELECT id, array_position(xs, 9), array_remove(xs, 1), array_sort(xs), cardinality(xs),
    cardinality(xss), array_dims(xss), array_dims(xs), array_ndims(xss), transform(xs, i -> i / 2)
FROM rows;

CREATE TABLE minutes (mean BIGINT, share DOUBLE, ns INT[], distinct_ns INT[]) WITH (connector = 'memory');
INSERT INTO minutes
SELECT sum(a) / count(*), sum(x) / sum(y), array_sort(array_agg(n)), array_sort(array_agg(DISTINCT b))
FROM rows GROUP BY tumble(INTERVAL '1 minute');

CREATE TABLE means (b INT, mean BIGINT, ns INT[], PRIMARY KEY (b)) WITH (connector = 'memory');
INSERT INTO means SELECT b, sum(a) / count(*), array_sort(array_agg(n)) FROM rows GROUP BY b;

CREATE TABLE places (id INT, first INT, last INT) WITH (connector = 'memory');
INSERT INTO places
SELECT id, row_number() OVER (ORDER BY n), row_number() OVER (ORDER BY n DESC) FROM rows;
