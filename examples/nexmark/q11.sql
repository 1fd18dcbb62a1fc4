-- User sessions: the bids of a bidder without a pause of ten seconds.
CREATE TABLE bid (
    bidder BIGINT, datetime TIMESTAMP,
    WATERMARK FOR datetime AS datetime - INTERVAL '4 seconds'
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q11 (
    bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP, endtime TIMESTAMP
) WITH (connector = 'files', path = 'out/q11', format = 'json');

INSERT INTO q11
SELECT bidder, bid_count, window.start, window.end
FROM (
    SELECT bidder, count(*) AS bid_count, session(INTERVAL '10 seconds') AS window
    FROM bid
    GROUP BY bidder, window
);
