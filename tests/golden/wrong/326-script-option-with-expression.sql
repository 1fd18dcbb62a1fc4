CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'x' || 'y');
SELECT * FROM a;
