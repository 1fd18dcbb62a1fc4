CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE VIEW v AS SELECT * FROM w;
CREATE VIEW w AS SELECT * FROM v;
SELECT * FROM w;
