CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json', bad_dta = 'drop',
  client_config = 'a=b', 'json.timestamp_fromat' = 'rfc3339');
SELECT id FROM a;
