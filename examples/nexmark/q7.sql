-- Highest bid: the bids with the highest price in each ten seconds.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING,
    WATERMARK FOR datetime AS datetime - INTERVAL '4 seconds'
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q7 (
    auction BIGINT, price BIGINT, bidder BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'out/q7', format = 'json');

INSERT INTO q7
SELECT highest.auction, highest.price, highest.bidder, highest.datetime, highest.extra
FROM (
    SELECT explode(filter(bids, b -> b.price = maxprice)) AS highest
    FROM (
        SELECT max(price) AS maxprice,
               collect_list(struct(auction, price, bidder, datetime, extra)) AS bids
        FROM bid
        GROUP BY tumble(INTERVAL '10 seconds')
    )
);
