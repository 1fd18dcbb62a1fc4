-- Expanded bids: the bids on the auctions of a category, with the auction.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE auction (
    id BIGINT, description STRING, item_name STRING, initial_bid BIGINT, reserve BIGINT,
    datetime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE q20 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    bid_datetime TIMESTAMP, bid_extra STRING, item_name STRING, description STRING,
    initial_bid BIGINT, reserve BIGINT, auction_datetime TIMESTAMP, expires TIMESTAMP,
    seller BIGINT, category BIGINT, auction_extra STRING
) WITH (connector = 'files', path = 'out/q20', format = 'json');

INSERT INTO q20
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.datetime, b.extra,
       a.item_name, a.description, a.initial_bid, a.reserve, a.datetime, a.expires, a.seller,
       a.category, a.extra
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10;
