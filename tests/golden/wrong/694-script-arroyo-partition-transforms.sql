CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TABLE o (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'filesystem', path = 'out', format = 'json') PARTITIONED BY (identity(name), day(at));
CREATE TABLE p (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'filesystem', path = 'out', format = 'json') PARTITIONED BY (bucket(id, 4));
CREATE TABLE q (id BIGINT, name TEXT, at TIMESTAMP)
  WITH (connector = 'iceberg', 'catalog.type' = 'rest') PARTITIONED BY (truncate(name, 10), void(id));
CREATE TABLE r (id BIGINT) WITH (connector = 'filesystem', path = 'out') PARTITIONED BY (buckt(id, 4));
INSERT INTO o SELECT * FROM a;
INSERT INTO p SELECT * FROM a;
INSERT INTO q SELECT * FROM a;
