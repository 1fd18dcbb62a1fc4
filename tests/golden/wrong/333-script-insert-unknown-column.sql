CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE TABLE o (id BIGINT, name STRING) WITH (connector = 'files', path = 'out', format = 'json');
INSERT INTO o (id, nam) SELECT id, name FROM a;
