CREATE TABLE a (value TEXT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'avro',
  'avro.into_unstructured_json' = 'true');
SELECT value FROM a;
