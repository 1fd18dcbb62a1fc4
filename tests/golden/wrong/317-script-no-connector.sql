CREATE TABLE a (id BIGINT) WITH (path = 'x');
SELECT * FROM a;
