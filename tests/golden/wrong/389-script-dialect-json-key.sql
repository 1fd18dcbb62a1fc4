CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
SELECT name -> 'b' -> CASE WHEN id = 1 THEN 'c' END
FROM a;
