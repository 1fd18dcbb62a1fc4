CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'source.offset' = 'earlyest');
SELECT id FROM a;
