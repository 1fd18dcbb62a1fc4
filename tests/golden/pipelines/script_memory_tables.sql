-- Tables without a connector: their columns are assigned by position, and windows read their event time.
CREATE TABLE rides (driver TEXT, fare DOUBLE, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
WITH (connector = 'files', path = 'in/*.json', format = 'json');

CREATE TABLE doubled (who TEXT, twice DOUBLE);
INSERT INTO doubled SELECT driver, fare * 2 FROM rides WHERE fare > 0;

CREATE TABLE timed (who TEXT, fare DOUBLE, moment TIMESTAMP);
INSERT INTO timed SELECT driver, fare, at FROM rides;

CREATE TABLE minutes (minute TIMESTAMP, who TEXT, fares DOUBLE);
INSERT INTO minutes
SELECT window.start, driver, fares FROM (
    SELECT tumble(INTERVAL '1 minute') AS window, driver, sum(fare) AS fares FROM rides GROUP BY 1, 2
);

CREATE TABLE hidden_time (start TIMESTAMP, who TEXT, twice DOUBLE) WITH (connector = 'memory');
INSERT INTO hidden_time
SELECT window.start, who, sum(twice) FROM doubled GROUP BY tumble(INTERVAL '1 minute'), who;

CREATE TABLE named_time (start TIMESTAMP, who TEXT, n BIGINT) WITH (connector = 'memory');
INSERT INTO named_time
SELECT window.start, who, count(*) FROM timed GROUP BY tumble(INTERVAL '1 minute'), who;

CREATE TABLE by_start (minute TIMESTAMP, best DOUBLE) WITH (connector = 'memory');
INSERT INTO by_start SELECT minute, max(fares) FROM minutes GROUP BY minute;

CREATE TABLE by_driver (who TEXT PRIMARY KEY, best DOUBLE) WITH (connector = 'memory', mode = 'upsert');
INSERT INTO by_driver SELECT who, max(fares) FROM minutes GROUP BY who;
