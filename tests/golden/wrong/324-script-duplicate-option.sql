CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'x', 'path' = 'y');
SELECT * FROM a;
