CREATE TABLE a (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 fortnights') WITH (connector = 'files', path = 'x', format = 'csv');
SELECT * FROM a;
