CREATE TABLE t (k STRING, x INT) WITH (connector = 'files', path = 't', format = 'json', watch = true);
CREATE TABLE names (k STRING, x INT)
WITH (connector = 'files', path = 'names.jsonl', format = 'json', static = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT k, x FROM names UNION ALL SELECT k, x FROM t;
CREATE TABLE b WITH (connector = 'files', path = 'b', format = 'json') AS
SELECT k FROM t UNION ALL VALUES ('none');
