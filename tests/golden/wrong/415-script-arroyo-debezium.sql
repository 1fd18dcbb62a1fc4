CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'debezium_json');
SELECT id FROM a;
