CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = '${IN}/*.csv', format = 'csv');
SELECT * FROM a;
