CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in/*.csv', format = 'csv');
CREATE VIEW v AS SELECT 1 AS x;
SELECT * FROM v;
SELECT 2;
