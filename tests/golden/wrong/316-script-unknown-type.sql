CREATE TABLE a (id BIGINT, name STRIN) WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
