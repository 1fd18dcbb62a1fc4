CREATE TABLE a (id BIGINT)
  WITH (connector = 'mqtt', url = 'mqtt://h', topic = 't', qos = 'once', format = 'json');
SELECT id FROM a;
