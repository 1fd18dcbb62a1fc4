SELECT auction, bidder, price, datetime, value
FROM bid JOIN side_input ON auction % 10000 = key
