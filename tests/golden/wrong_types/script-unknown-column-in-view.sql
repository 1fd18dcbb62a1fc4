CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE VIEW v AS
SELECT id AS number FROM a;
SELECT id FROM v;
