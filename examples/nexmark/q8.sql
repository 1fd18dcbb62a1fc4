-- Monitor new users: persons who open an auction in the ten seconds in which they register.
CREATE TABLE person (
    id BIGINT, name STRING, datetime TIMESTAMP,
    WATERMARK FOR datetime AS datetime - INTERVAL '4 seconds'
) WITH (connector = 'files', path = 'data/person', format = 'parquet');

CREATE TABLE auction (
    seller BIGINT, datetime TIMESTAMP,
    WATERMARK FOR datetime AS datetime - INTERVAL '4 seconds'
) WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE q8 (
    id BIGINT, name STRING, starttime TIMESTAMP
) WITH (connector = 'files', path = 'out/q8', format = 'json');

INSERT INTO q8
SELECT p.id, p.name, p.window.start
FROM (
    SELECT id, name, tumble(INTERVAL '10 seconds') AS window FROM person GROUP BY id, name, window
) AS p JOIN (
    SELECT seller, tumble(INTERVAL '10 seconds') AS window FROM auction GROUP BY seller, window
) AS a ON p.id = a.seller AND p.window = a.window;
