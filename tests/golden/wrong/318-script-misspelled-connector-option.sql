CREATE TABLE a (id BIGINT) WITH (conector = 'files', path = 'x');
SELECT * FROM a;
