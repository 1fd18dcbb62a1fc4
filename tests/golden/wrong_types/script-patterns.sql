CREATE TABLE e (id BIGINT, k TEXT) WITH (connector = 'files', path = 'e.json', format = 'json');
CREATE VIEW a AS SELECT id, k FROM e WHERE k ~ '(';
CREATE VIEW b AS SELECT id, regexp_replace(k, '[a', 'x') AS k FROM e;
CREATE VIEW c AS SELECT id, split(k, 'a|b') AS parts FROM e WHERE k RLIKE '\\d+' AND k NOT RLIKE r'\d{2';
SELECT id FROM a;
SELECT id FROM b;
SELECT id FROM c;
SELECT id FROM e WHERE k RLIKE '(' 'a)';
