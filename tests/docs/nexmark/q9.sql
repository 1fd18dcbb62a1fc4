SELECT a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.datetime, a.expires, a.seller,
       a.category, a.extra, b.auction, b.bidder, b.price, b.datetime AS bid_datetime,
       b.extra AS bid_extra
FROM auction AS a, bid AS b
WHERE a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires AND NOT EXISTS (
    FROM bid AS higher
    WHERE higher.auction = a.id AND higher.datetime BETWEEN a.datetime AND a.expires
      AND (higher.price > b.price OR (higher.price = b.price AND higher.datetime < b.datetime))
)
