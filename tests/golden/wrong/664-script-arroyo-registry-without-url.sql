CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'json.confluent_schema_registry' = 'true');
SELECT id FROM a;
