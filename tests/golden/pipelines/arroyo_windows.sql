-- Windows as Arroyo writes them. Views drop the event time, which windows still use.
CREATE TABLE rides (
    driver TEXT,
    status TEXT,
    fare DOUBLE,
    at TIMESTAMP NOT NULL,
    WATERMARK FOR at AS (at - INTERVAL '5 seconds')
) WITH (connector = 'files', path = 'in/*.json', format = 'json');

CREATE TABLE fares (driver TEXT, fare DOUBLE, at TIMESTAMP, WATERMARK FOR at)
WITH (connector = 'files', path = 'fares/*.json', format = 'json');
CREATE VIEW paid AS SELECT driver, fare FROM fares;

CREATE VIEW dropoffs AS SELECT driver, fare FROM rides WHERE status = 'dropoff';

CREATE TABLE tumbled (start TIMESTAMP, "end" TIMESTAMP, driver TEXT, n BIGINT, drivers BIGINT)
WITH (connector = 'memory');
INSERT INTO tumbled
SELECT window.start, window."end", driver, n, drivers FROM (
    SELECT tumble(interval '1 minute') AS window, driver, count(*) AS n,
        count(DISTINCT status) AS drivers
    FROM rides
    GROUP BY window, driver
    HAVING count(*) > 0
);

CREATE TABLE hopped (start TIMESTAMP, fares DOUBLE) WITH (connector = 'memory');
INSERT INTO hopped
SELECT window.start, fares FROM (
    SELECT sum(fare) AS fares, hop(interval '1 minute', interval '2 minutes') AS window
    FROM dropoffs GROUP BY 2
);

CREATE TABLE sessions (start TIMESTAMP, "end" TIMESTAMP, driver TEXT, n BIGINT)
WITH (connector = 'memory');
INSERT INTO sessions
SELECT window.start, window.end, driver, n FROM (
    SELECT driver, session(interval '30 seconds') AS window, count(*) AS n
    FROM rides GROUP BY window, driver
);

CREATE TABLE all_sessions (start TIMESTAMP, n BIGINT) WITH (connector = 'memory');
INSERT INTO all_sessions
SELECT window.start, count(*) FROM rides GROUP BY session(interval '30 seconds');

CREATE TABLE nested (start TIMESTAMP, most BIGINT) WITH (connector = 'memory');
INSERT INTO nested
SELECT window.start, max(n) AS most FROM (
    SELECT tumble(interval '1 minute') AS window, driver, count(*) AS n FROM rides GROUP BY 1, 2
)
GROUP BY window;

CREATE TABLE best (start TIMESTAMP, driver TEXT, fares DOUBLE, place BIGINT)
WITH (connector = 'memory');
INSERT INTO best
SELECT window.start, driver, fares, place FROM (
    SELECT *, row_number() OVER (PARTITION BY window ORDER BY fares DESC, driver) AS place FROM (
        SELECT tumble(interval '1 minute') AS window, driver, sum(fare) AS fares
        FROM rides GROUP BY window, driver
    )
)
WHERE place <= 1;

CREATE TABLE joined (start TIMESTAMP, driver TEXT, n BIGINT, fares DOUBLE)
WITH (connector = 'memory');
INSERT INTO joined
SELECT a.window.start, a.driver, a.n, b.fares
FROM (
    SELECT tumble(interval '1 minute') AS window, driver, count(*) AS n FROM rides GROUP BY 1, 2
) AS a
LEFT JOIN (
    SELECT tumble(interval '1 minute') AS window, driver, sum(fare) AS fares
    FROM paid GROUP BY 1, 2
) AS b
ON a.driver = b.driver;
