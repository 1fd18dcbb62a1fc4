CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE TABLE o WITH (connector = 'kafka', bootstrap_servers = 'h:1', topic = 'o', format = 'json',
  'sink.commit_mode' = 'exactly-once');
INSERT INTO o SELECT * FROM a;
