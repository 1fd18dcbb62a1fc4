CREATE TABLE a (id BIGINT)
  WITH (connector = 'single_file', path = 'in', format = 'json', bad_data = 'drop', bad_data = 'fail');
SELECT id FROM a;
