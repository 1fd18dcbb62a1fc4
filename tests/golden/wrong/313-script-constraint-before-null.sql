CREATE TABLE a (id BIGINT NOT) WITH (connector = 'files', path = 'x');
SELECT * FROM a;
