CREATE TABLE a (id BIGINT) WITH (
  connector = 'single_file', path = 'in/a.json', format = 'json', type = 'sorce'
);
SELECT id FROM a;
