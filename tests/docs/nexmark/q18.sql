SELECT auction, bidder, price, channel, url, datetime, extra
FROM bid
WHERE (bidder, auction, datetime) IN (
    SELECT (bidder, auction, max(datetime)) FROM bid GROUP BY bidder, auction
)
