SELECT bidder, count(*) AS bid_count, min(datetime) AS starttime,
       max(datetime) + INTERVAL 10 SECOND AS endtime
FROM (
    SELECT bidder, datetime, count(*) FILTER (pause >= INTERVAL 10 SECOND) OVER (
        PARTITION BY bidder ORDER BY datetime
    ) AS number
    FROM (
        SELECT bidder, datetime,
               datetime - lag(datetime) OVER (PARTITION BY bidder ORDER BY datetime) AS pause
        FROM bid
    )
)
GROUP BY bidder, number
