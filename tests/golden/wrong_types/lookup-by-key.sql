CREATE TABLE a (id TEXT, value TEXT)
  WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TEMPORARY TABLE b (id TEXT METADATA FROM 'key' PRIMARY KEY, value TEXT)
  WITH (connector = 'redis', address = 'redis://h', format = 'json');
SELECT a.id, b.value FROM a LEFT JOIN b ON a.value = b.value;
SELECT a.id, b.value FROM a
JOIN b ON CAST(a.id AS INT) = b.id AND b.value = 'x';
SELECT id, value FROM a
WHERE id IN (SELECT id FROM b);
SELECT a.id FROM a JOIN (SELECT max(id) AS id FROM b) AS c ON a.id = c.id;
SELECT a.id FROM a CROSS JOIN b;
SELECT a.id FROM b JOIN b AS c ON b.id = c.id JOIN a ON a.id = b.id;
