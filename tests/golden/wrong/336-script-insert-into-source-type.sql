CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE TABLE o (id BIGINT) WITH (connector = 'files', type = 'source', path = 'x', format = 'csv');
INSERT INTO o SELECT id FROM a;
