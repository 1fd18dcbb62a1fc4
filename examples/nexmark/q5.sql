-- Hot items: the auctions with the most bids of the last ten seconds, every two seconds.
CREATE TABLE bid (
    auction BIGINT, datetime TIMESTAMP,
    WATERMARK FOR datetime AS datetime - INTERVAL '4 seconds'
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q5 (
    auction BIGINT, num BIGINT, starttime TIMESTAMP, endtime TIMESTAMP
) WITH (connector = 'files', path = 'out/q5', format = 'json');

INSERT INTO q5
SELECT auction, num, window.start, window.end
FROM (
    SELECT *, max(num) OVER (PARTITION BY window) AS maxn
    FROM (
        SELECT auction, count(*) AS num,
               hop(INTERVAL '2 seconds', INTERVAL '10 seconds') AS window
        FROM bid
        GROUP BY auction, window
    )
)
WHERE num >= maxn;
