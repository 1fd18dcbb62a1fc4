CREATE TABLE a (id BIGINT)
  WITH (connector = 'kafka', bootstrap_servers = 'h:9092', format = 'json', type = 'source');
CREATE TABLE b (id BIGINT)
  WITH (connector = 'polling_http', poll_interval_ms = 500, format = 'json');
CREATE TABLE c WITH (connector = 'iceberg', 'catalog.type' = 'rest', 'catalog.rest.url' = 'http://h',
  format = 'parquet', type = 'sink');
CREATE TABLE d WITH (connector = 'delta', format = 'parquet', type = 'sink');
INSERT INTO c SELECT id FROM a;
INSERT INTO d SELECT id FROM b;
