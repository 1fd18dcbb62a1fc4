CREATE TABLE t (k STRING, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE u (k STRING, y INT) WITH (connector = 'files', path = 'u', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT a.k, y FROM (
    SELECT k, rank() OVER (PARTITION BY window ORDER BY n) AS r
    FROM (SELECT k, tumble(INTERVAL '1 minute') AS window, count(*) AS n FROM t GROUP BY k, window)
) a JOIN u ON a.k = u.k WHERE r = 1;
