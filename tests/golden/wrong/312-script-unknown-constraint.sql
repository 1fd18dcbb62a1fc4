CREATE TABLE a (id BIGINT UNIQUE) WITH (connector = 'files', path = 'x');
SELECT * FROM a;
