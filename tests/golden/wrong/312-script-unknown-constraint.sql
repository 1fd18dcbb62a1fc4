CREATE TABLE a (id BIGINT UNIQUE) WITH (connector = 'files', path = 'x.csv');
SELECT * FROM a;
