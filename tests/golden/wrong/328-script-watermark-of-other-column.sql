CREATE TABLE a (at TIMESTAMP, b TIMESTAMP, WATERMARK FOR at AS b - INTERVAL '5 seconds') WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
