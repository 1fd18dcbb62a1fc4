SELECT bidder, count(*) AS bid_count, time_bucket(INTERVAL 10 SECOND, arrival) AS starttime,
       time_bucket(INTERVAL 10 SECOND, arrival) + INTERVAL 10 SECOND AS endtime
FROM bid
GROUP BY bidder, starttime
