CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'x', format = 'cvs');
SELECT * FROM a;
