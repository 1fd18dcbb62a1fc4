-- Bounded side input join: all bids with a value of a table.
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP)
WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TEMPORARY TABLE side_input (key BIGINT, value STRING)
WITH (connector = 'files', path = 'data/side_input', format = 'parquet');

CREATE TABLE q13 (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, value STRING
) WITH (connector = 'files', path = 'out/q13', format = 'json');

INSERT INTO q13
SELECT b.auction, b.bidder, b.price, b.datetime, s.value
FROM bid AS b JOIN side_input AS s ON mod(b.auction, 10000) = s.key;
