SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.datetime AS bid_datetime,
       b.extra AS bid_extra, a.item_name, a.description, a.initial_bid, a.reserve,
       a.datetime AS auction_datetime, a.expires, a.seller, a.category, a.extra AS auction_extra
FROM bid AS b, auction AS a
WHERE b.auction = a.id AND a.category = 10
