CREATE TABLE a (id BIGINT)
  WITH (connector = 'delta', path = 'x');
SELECT id FROM a;
