CREATE TABLE clicks (
    user TEXT,
    at TIMESTAMP,
    n INT,
    WATERMARK FOR at AS at - INTERVAL '10' SECOND
) WITH (connector = 'files', path = 'in/*.json', format = 'json');

CREATE TABLE per_minute (start TIMESTAMP, user STRING, n BIGINT) WITH (connector = 'memory');

INSERT INTO per_minute
SELECT window.start, user, sum(n) FROM clicks GROUP BY window(at, '1 minute'), user;
