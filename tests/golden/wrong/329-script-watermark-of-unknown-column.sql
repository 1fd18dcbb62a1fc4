CREATE TABLE a (at TIMESTAMP, WATERMARK FOR ta) WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
