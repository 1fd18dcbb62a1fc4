-- Windows of the processing time: the bids of a bidder in ten seconds of the time of arrival.
CREATE TABLE arrivals (
    bidder BIGINT, arrival TIMESTAMP,
    WATERMARK FOR arrival AS arrival
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q12 (
    bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP, endtime TIMESTAMP
) WITH (connector = 'files', path = 'out/q12', format = 'json');

INSERT INTO q12
SELECT bidder, bid_count, window.start, window.end
FROM (
    SELECT bidder, count(*) AS bid_count, tumble(INTERVAL '10 seconds') AS window
    FROM arrivals
    GROUP BY bidder, window
);
