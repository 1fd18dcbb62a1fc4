CREATE TABLE a (id BIGINT)
  WITH (connector = 'filesystem', path = 'x', 'source.regex_pattern' = '(', format = 'json');
SELECT id FROM a;
