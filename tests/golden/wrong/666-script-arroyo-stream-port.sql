CREATE TABLE a (id BIGINT)
  WITH (connector = 'rabbitmq', host = 'h', port = 5600, stream = 's', format = 'json');
SELECT id FROM a;
