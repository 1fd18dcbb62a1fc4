CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in/*.csv', format = 'csv');
SHOW TABLES;
DESCRIBE a;
DESC a;
EXPLAIN SELECT id FROM a;
SET;
RESET runtime.trigger;
DROP VIEW IF EXISTS b;
SELECT id FROM a;
