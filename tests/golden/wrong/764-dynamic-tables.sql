CREATE TABLE t (s STRING, n INT) WITH (connector = 'files', path = 'x.jsonl');
CREATE TABLE two (a STRING, b STRING) WITH (connector = 'dynamic_table') AS SELECT s FROM t;
CREATE TABLE keyed (a STRING, PRIMARY KEY (b)) WITH (connector = 'dynamic_table') AS SELECT s FROM t;
CREATE TABLE wallets WITH (connector = 'dynamic_table') AS SELECT s FROM t;
SELECT *, dynamic_table_check('walets', s) AS ok
FROM t;
