CREATE TABLE a (id BIGINT, b BIGINT GENERATED ALWAYS AS (idd * 2)) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv'
);
SELECT * FROM a;
