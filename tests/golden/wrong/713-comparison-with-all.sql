CREATE TABLE t (a INT) WITH (connector = 'files', path = 'x.json', format = 'json');
SELECT a FROM t WHERE a > ALL (SELECT a FROM t);
