SELECT auction, bidder, price, channel, url, datetime, extra,
       row_number() OVER (PARTITION BY auction ORDER BY price DESC, datetime) AS place
FROM bid
QUALIFY place <= 10
