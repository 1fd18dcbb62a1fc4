CREATE TABLE a (id BIGINT, Id INT) WITH (connector = 'files', path = 'x');
SELECT * FROM a;
