CREATE TABLE e (id BIGINT, at TIMESTAMP) WITH (connector = 'files', path = 'e.json', format = 'json');
SELECT id FROM e
WHERE id > 0
  AND at > '2026-13-01';
