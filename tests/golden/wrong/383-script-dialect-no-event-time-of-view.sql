CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE VIEW names AS SELECT DISTINCT name FROM a;
SELECT count(*) FROM names
GROUP BY tumble(INTERVAL '1 minute');
