-- Selection: the bids on some auctions.
CREATE TABLE bid (auction BIGINT, price BIGINT)
WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q2 (
    auction BIGINT, price BIGINT
) WITH (connector = 'files', path = 'out/q2', format = 'json');

INSERT INTO q2
SELECT auction, price FROM bid WHERE mod(auction, 123) = 0;
