CREATE TABLE a (id BIGINT, f STRING METADATA FROM 'fil') WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
