CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT count(*) FROM a
GROUP BY tumble(INTERVAL '1 minute');
