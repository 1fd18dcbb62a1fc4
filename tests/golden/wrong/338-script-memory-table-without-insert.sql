CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
CREATE TABLE m (id BIGINT);
SELECT * FROM m;
