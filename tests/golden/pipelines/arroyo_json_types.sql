-- Values of other JSON types than that of a function or cast, and keys that are expressions.
CREATE TABLE events (id BIGINT, k TEXT, n BIGINT, b TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 second')
WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');

CREATE TABLE "values" (id BIGINT, i BIGINT, f DOUBLE, o BOOLEAN, s TEXT, "cast" INT, "text" TEXT)
WITH (connector = 'single_file', path = 'out/values.json', format = 'json', type = 'sink');

INSERT INTO "values"
SELECT id, json_get_int(b, 'p'), json_get_float(b, 'p'), json_get_bool(b, 'p'), json_get_str(b, 'p'),
    (b -> 'p')::INT, CAST(b -> 'p' AS VARCHAR) FROM events;

CREATE TABLE computed (id BIGINT, v TEXT, j TEXT, known BOOLEAN, item TEXT, quoted TEXT)
WITH (connector = 'single_file', path = 'out/computed.json', format = 'json', type = 'sink');

INSERT INTO computed
SELECT id, b ->> k, b -> concat(k, ''), b ? k, b -> 'xs' ->> n, b ->> 'it''s' FROM events;

CREATE TABLE minutes (start TIMESTAMP, k TEXT, total BIGINT)
WITH (connector = 'single_file', path = 'out/minutes.json', format = 'json', type = 'sink');

INSERT INTO minutes
SELECT window.start, k, total FROM (
  SELECT tumble(INTERVAL '1 minute') AS window, b ->> 'it''s' AS k, sum((b -> 'p')::BIGINT) AS total
  FROM events GROUP BY 1, 2
);

CREATE TABLE totals (k TEXT, total DOUBLE, largest TEXT)
WITH (connector = 'single_file', path = 'out/totals.json', format = 'debezium_json', type = 'sink');

INSERT INTO totals
SELECT k, sum(json_get_float(b, k)), max(json_get_str(b, k)) FROM events GROUP BY k;
