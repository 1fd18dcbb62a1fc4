CREATE TABLE a (id BIGINT) WITH (connector = 'files', pth = 'x', format = 'csv');
SELECT * FROM a;
