SELECT auction, bidder, 0.908 * price AS price,
       CASE
           WHEN hour(datetime) >= 8 AND hour(datetime) <= 18 THEN 'dayTime'
           WHEN hour(datetime) <= 6 OR hour(datetime) >= 20 THEN 'nightTime'
           ELSE 'otherTime'
       END AS bid_time_type,
       datetime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
