CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE VIEW v AS
SELECT to_char(at, '%Y-%U') AS s FROM a;
SELECT * FROM v;
