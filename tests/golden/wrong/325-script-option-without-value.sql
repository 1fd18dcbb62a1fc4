CREATE TABLE a (id BIGINT) WITH (connector = 'files', path);
SELECT * FROM a;
