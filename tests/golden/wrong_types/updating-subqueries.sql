CREATE TABLE t (k STRING, x INT) WITH (connector = 'files', path = 't', format = 'json', watch = true);
CREATE TABLE u (k STRING, y INT) WITH (connector = 'files', path = 'u', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'files', path = 'a', format = 'debezium_json') AS
SELECT t.k, l.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k LIMIT 1) l;
CREATE TABLE b WITH (connector = 'files', path = 'b', format = 'debezium_json') AS
SELECT k, count(*) AS n FROM t TABLESAMPLE (10 PERCENT) GROUP BY k;
