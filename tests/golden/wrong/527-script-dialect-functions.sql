CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'files', path = 'in/*.json', format = 'json');
CREATE VIEW u AS SELECT regexp_instr(name, 'a', 1, 2) AS name FROM a;
CREATE VIEW v AS SELECT digest(name, 'blake3') AS name FROM a;
CREATE VIEW w AS SELECT at AT TIME ZONE 'Europe/Berlin' AS at FROM a;
CREATE VIEW x AS SELECT array_dims(split(name, ',')) AS n FROM a;
SELECT date_bin(INTERVAL '1 month', at, TIMESTAMP '2024-01-15') FROM a;
