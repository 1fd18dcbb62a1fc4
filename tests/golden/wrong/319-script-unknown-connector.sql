CREATE TABLE a (id BIGINT) WITH (connector = 'fils', path = 'x');
SELECT * FROM a;
