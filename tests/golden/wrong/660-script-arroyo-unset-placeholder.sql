CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'auth.type' = 'sasl', 'auth.protocol' = 'SASL_SSL', 'auth.password' = 'x{{ PASSWORD_OF_KAFKA }}');
SELECT id FROM a;
