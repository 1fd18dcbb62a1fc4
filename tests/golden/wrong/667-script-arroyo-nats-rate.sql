CREATE TABLE a (id BIGINT)
  WITH (connector = 'nats', servers = 'h:4222', stream = 's', format = 'json',
  'consumer.rate_limit' = 1000);
SELECT id FROM a;
