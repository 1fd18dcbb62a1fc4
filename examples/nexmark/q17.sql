-- Auction statistics: bids and prices of each auction and day.
CREATE TABLE bid (auction BIGINT, price BIGINT, datetime TIMESTAMP)
WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q17 (
    auction BIGINT, day STRING,
    total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT,
    min_price BIGINT, max_price BIGINT, avg_price DOUBLE, sum_price BIGINT,
    PRIMARY KEY (auction, day)
) WITH (connector = 'files', path = 'out/q17', format = 'debezium_json');

INSERT INTO q17
SELECT auction,
       date_format(datetime, 'yyyy-MM-dd') AS day,
       count(*) AS total_bids,
       count(*) FILTER (WHERE price < 10000) AS rank1_bids,
       count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       min(price) AS min_price,
       max(price) AS max_price,
       avg(price) AS avg_price,
       sum(price) AS sum_price
FROM bid
GROUP BY auction, day;
