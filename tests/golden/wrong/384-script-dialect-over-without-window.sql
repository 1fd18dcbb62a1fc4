CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE VIEW w AS
SELECT tumble(INTERVAL '1 minute') AS window, name, count(*) AS n FROM a GROUP BY window, name;
SELECT name, n,
  row_number() OVER (PARTITION BY name ORDER BY n) AS place FROM w;
