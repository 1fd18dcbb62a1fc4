CREATE TABLE a (id BIGINT, name TEXT)
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE TABLE o WITH (connector = 'redis', address = 'redis://h', format = 'json',
  'target.key_prefix' = 'x');
INSERT INTO o SELECT * FROM a;
