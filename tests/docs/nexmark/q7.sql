SELECT b.auction, b.price, b.bidder, b.datetime, b.extra
FROM bid AS b JOIN (
    SELECT max(price) AS maxprice, time_bucket(INTERVAL 10 SECOND, datetime) AS starttime
    FROM bid
    GROUP BY starttime
) AS m ON b.price = m.maxprice AND time_bucket(INTERVAL 10 SECOND, b.datetime) = m.starttime
