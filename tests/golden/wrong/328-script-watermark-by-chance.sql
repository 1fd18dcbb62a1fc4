CREATE TABLE a (at TIMESTAMP, b TIMESTAMP, WATERMARK FOR at AS b - INTERVAL '5' SECOND * rand()) WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
