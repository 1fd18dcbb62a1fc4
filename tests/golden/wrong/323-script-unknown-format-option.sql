CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'x', format = 'csv', 'csv.delimitr' = ';');
SELECT * FROM a;
