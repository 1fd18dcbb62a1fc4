CREATE TABLE a (id TEXT) WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TEMPORARY TABLE b (id TEXT METADATA FROM 'key' PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', address = 'redis://h', format = 'json');
SELECT a.id, b.name FROM a LEFT JOIN b ON a.id = b.id;
