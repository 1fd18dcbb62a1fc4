CREATE TABLE t (k STRING, x INT, at TIMESTAMP, WATERMARK FOR at AS at)
WITH (connector = 'files', path = 't', format = 'json', watch = true);
CREATE TABLE names (k STRING, x INT, at TIMESTAMP)
WITH (connector = 'files', path = 'names.jsonl', format = 'json', static = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT k, x FROM names UNION ALL SELECT k, x FROM t;
CREATE TABLE b WITH (connector = 'files', path = 'b', format = 'json') AS
SELECT k FROM t UNION ALL VALUES ('none');
CREATE TABLE c WITH (connector = 'blackhole') AS
SELECT count(*) AS n FROM (SELECT at FROM t UNION ALL SELECT at FROM names)
GROUP BY window(at, '1 minute');
CREATE TEMPORARY TABLE prices (k STRING, price INT, PRIMARY KEY (k))
WITH (connector = 'files', path = 'prices.jsonl', format = 'json');
CREATE TABLE d WITH (connector = 'files', path = 'd', format = 'debezium_json') AS
SELECT k, count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM prices) GROUP BY k;
