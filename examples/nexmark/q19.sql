-- Auction top 10: the ten highest bids of each auction.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q19 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, datetime TIMESTAMP,
    extra STRING, place INT,
    PRIMARY KEY (auction, place)
) WITH (connector = 'files', path = 'out/q19', format = 'debezium_json');

INSERT INTO q19
SELECT auction, bidder, price, channel, url, datetime, extra, place
FROM (
    SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, datetime) AS place
    FROM bid
)
WHERE place <= 10;
