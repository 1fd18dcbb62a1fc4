-- Winning bids: the highest bid of each auction.
CREATE TABLE auction (
    id BIGINT, description STRING, item_name STRING, initial_bid BIGINT, reserve BIGINT,
    datetime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q9 (
    id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
    datetime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING,
    auction BIGINT, bidder BIGINT, price BIGINT, bid_datetime TIMESTAMP, bid_extra STRING,
    PRIMARY KEY (id)
) WITH (connector = 'files', path = 'out/q9', format = 'debezium_json');

INSERT INTO q9
SELECT id, item_name, description, initial_bid, reserve, datetime, expires, seller, category, extra,
       auction, bidder, price, bid_datetime, bid_extra
FROM (
    SELECT a.*, b.auction, b.bidder, b.price, b.datetime AS bid_datetime, b.extra AS bid_extra,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.datetime) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.datetime BETWEEN a.datetime AND a.expires
)
WHERE place <= 1;
