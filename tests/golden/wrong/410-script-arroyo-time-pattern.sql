CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE TABLE o WITH (connector = 'filesystem', path = 'out', format = 'json',
  'partitioning.time_pattern' = '%Y/%Q');
INSERT INTO o SELECT * FROM a;
