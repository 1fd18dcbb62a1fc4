CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'auth.protocol' = 'SASL');
SELECT id FROM a;
