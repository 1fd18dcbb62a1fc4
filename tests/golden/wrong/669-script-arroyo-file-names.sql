CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TABLE o WITH (connector = 'filesystem', path = 'out', format = 'json',
  'rolling_policy.watermark_expiration' = true, 'filename.prefx' = 'p');
INSERT INTO o SELECT id FROM a;
