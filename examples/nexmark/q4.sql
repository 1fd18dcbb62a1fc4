-- Average price for a category: of the winning bids of its auctions.
CREATE TABLE auction (id BIGINT, category BIGINT, datetime TIMESTAMP, expires TIMESTAMP)
WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE bid (auction BIGINT, price BIGINT, datetime TIMESTAMP)
WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q4 (
    category BIGINT, average DOUBLE,
    PRIMARY KEY (category)
) WITH (connector = 'files', path = 'out/q4', format = 'debezium_json');

INSERT INTO q4
SELECT category, avg(final) AS average
FROM (
    SELECT a.category, max(b.price) AS final
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.datetime BETWEEN a.datetime AND a.expires
    GROUP BY a.id, a.category
)
GROUP BY category;
