-- Currency conversion: the price of each bid in euros.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q1 (
    auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'out/q1', format = 'json');

INSERT INTO q1
SELECT auction, bidder, 0.908 * price AS price, datetime, extra FROM bid;
