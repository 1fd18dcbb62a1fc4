CREATE TABLE a (id TEXT) WITH (connector = 'files', path = 'in/*.json');
CREATE TEMPORARY TABLE b (id TEXT METADATA FROM 'key' PRIMARY KEY, value TEXT)
  WITH (connector = 'redis', url = 'redis://h');
CREATE VIEW outer_ AS SELECT a.id, b.value FROM a FULL JOIN b ON a.id = b.id;
SELECT b.id FROM a RIGHT JOIN b ON a.id = b.id;
SELECT * FROM outer_;
