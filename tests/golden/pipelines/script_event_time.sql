CREATE TABLE clicks (
    user TEXT,
    time TEXT,
    at TIMESTAMP GENERATED ALWAYS AS (to_timestamp(time, 'dd.MM.yyyy HH:mm:ss')),
    WATERMARK FOR at AS at - INTERVAL '10' SECOND
) WITH (connector = 'files', path = 'in/*.json', format = 'json', late = 'dead_letter');

CREATE TABLE per_minute (start TIMESTAMP, n BIGINT) WITH (connector = 'memory');

INSERT INTO per_minute SELECT window.start, count(*) FROM clicks GROUP BY window(at, '1 minute');
