CREATE TABLE a (id BIGINT WITH (connector = 'files', path = 'x');
SELECT * FROM a;
