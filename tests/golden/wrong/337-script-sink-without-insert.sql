CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE TABLE o (id BIGINT) WITH (connector = 'files', type = 'sink', path = 'x', format = 'csv');
SELECT id FROM a JOIN o USING (id);
