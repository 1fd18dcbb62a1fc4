CREATE TABLE a (id BIGINT, o BIGINT METADATA FROM 'ofset')
  WITH (connector = 'kafka', bootstrap_servers = 'h:1', topic = 't', format = 'json');
SELECT id FROM a;
