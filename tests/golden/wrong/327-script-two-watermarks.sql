CREATE TABLE a (at TIMESTAMP, WATERMARK FOR at, WATERMARK FOR at) WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
