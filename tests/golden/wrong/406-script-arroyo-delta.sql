CREATE TABLE a (id BIGINT, day DATE)
  WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TABLE o WITH (connector = 'delta', path = 'x', format = 'json', type = 'sink');
CREATE TABLE p WITH (connector = 'delta', path = 'x', format = 'parquet', type = 'sink',
  'partitioning.field' = [day]);
CREATE TABLE q WITH (connector = 'iceberg', 'catalog.type' = 'rets', table_name = 't', type = 'sink');
INSERT INTO o SELECT * FROM a;
INSERT INTO p SELECT * FROM a;
INSERT INTO q SELECT * FROM a;
