CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'x', format = 'csv', watch = 'maybe');
SELECT * FROM a;
