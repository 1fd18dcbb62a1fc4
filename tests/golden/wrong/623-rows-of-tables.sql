CREATE TABLE t (k STRING, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE names (x INT, name STRING)
WITH (connector = 'files', path = 'names.jsonl', static = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT name, k FROM t RIGHT JOIN names ON t.x = names.x;
CREATE TABLE b WITH (connector = 'blackhole') AS
SELECT name FROM names LEFT ANTI JOIN t ON t.x = names.x;
