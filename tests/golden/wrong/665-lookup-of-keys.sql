CREATE TABLE a (id TEXT) WITH (connector = 'files', path = 'in/*.json');
CREATE TEMPORARY TABLE b (id TEXT, name TEXT)
  WITH (connector = 'redis', url = 'redis://h');
CREATE TEMPORARY TABLE c (id TEXT PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', url = 'redis://h', key = 'c:{name}');
CREATE TEMPORARY TABLE d (id TEXT PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', url = 'redis://h', stream = 'd');
CREATE TABLE e (id TEXT PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', url = 'redis://h', key = 'e:{id}');
CREATE TEMPORARY TABLE f (id TEXT METADATA FROM 'value' PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', url = 'redis://h');
CREATE TEMPORARY TABLE g (id TEXT PRIMARY KEY, name TEXT[])
  WITH (connector = 'redis', url = 'redis://h', hash = 'g:{id}');
CREATE TEMPORARY TABLE h (id TEXT PRIMARY KEY, name TEXT)
  WITH (connector = 'redis', url = 'redis://h', list = 'h', key = 'h:{id}');
SELECT a.id, b.name FROM a LEFT JOIN b ON a.id = b.id;
