CREATE TABLE a (id BIGINT)
  WITH (connector = 'single_fil', path = 'x', format = 'json');
SELECT id FROM a;
