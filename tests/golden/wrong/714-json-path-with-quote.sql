CREATE TABLE a (id BIGINT, name TEXT) WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
SELECT
  extract_json(name, '$.it''s') FROM a;
