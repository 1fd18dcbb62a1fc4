CREATE TABLE a (id BIGINT) WITH (connector = 'kafka', connection_profile = 'shop', topic = 't',
  format = 'avro', 'avro.confluent_schema_registry' = 'true');
SELECT id FROM a;
