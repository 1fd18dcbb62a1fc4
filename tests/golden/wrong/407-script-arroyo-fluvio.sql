CREATE TABLE a (id BIGINT)
  WITH (connector = 'fluvio', topic = 'x', format = 'json');
SELECT id FROM a;
