-- Pass through: all bids.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q0 (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'out/q0', format = 'json');

INSERT INTO q0
SELECT auction, bidder, price, datetime, extra FROM bid;
