CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'source.group_id_prefix' = 'x');
SELECT id FROM a;
