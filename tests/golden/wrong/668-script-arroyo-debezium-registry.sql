CREATE TABLE a (id BIGINT PRIMARY KEY)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'debezium_json',
  'schema_registry.endpoint' = 'http://h', 'json.confluent_schema_registry' = 'true');
SELECT id FROM a;
