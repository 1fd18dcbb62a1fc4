CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TABLE o WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  'json.compression' = 'gzip');
INSERT INTO o SELECT id FROM a;
