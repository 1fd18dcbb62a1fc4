CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE VIEW x AS SELECT tumble(INTERVAL '1 minute') AS window, count(*) AS n FROM a GROUP BY 1;
SELECT l.n, r.n FROM x AS l JOIN x AS r ON l.n = r.n;
