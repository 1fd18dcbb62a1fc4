CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in', format = 'json');
CREATE TABLE o WITH (connector = 'filesystem', path = 'out', format = 'json',
  'partitioning.time_pattern' = '%Y');
INSERT INTO o SELECT id FROM a;
