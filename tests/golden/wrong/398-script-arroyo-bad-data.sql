CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json',
  bad_data = 'dorp');
SELECT id FROM a;
