CREATE TABLE a (id BIGINT, topic INT METADATA FROM 'topic', o TEXT METADATA FROM 'offset_id',
  p INT METADATA FROM 'partition', ms BIGINT METADATA FROM 'timestamp', k BYTEA METADATA FROM 'key')
WITH (connector = 'kafka', bootstrap_servers = 'localhost:1', topic = 'a', format = 'json');
SELECT * FROM a;
