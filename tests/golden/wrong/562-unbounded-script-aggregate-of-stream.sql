CREATE TABLE a (id BIGINT, name STRING, at TIMESTAMP) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv', watch = true
);
SELECT name, count(*) FROM a GROUP BY name;
