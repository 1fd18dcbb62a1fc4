-- Last bid: the last bid of each bidder on each auction.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q18 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, datetime TIMESTAMP,
    extra STRING,
    PRIMARY KEY (bidder, auction)
) WITH (connector = 'files', path = 'out/q18', format = 'debezium_json');

INSERT INTO q18
SELECT auction, bidder, price, channel, url, datetime, extra
FROM (
    SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY datetime DESC) AS place
    FROM bid
)
WHERE place <= 1;
