CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'auth.type' = 'sasl', 'auth.username' = 'u', 'auth.password' = 'x{{ PASSWORD_OF_KAFKA }}');
SELECT id FROM a;
