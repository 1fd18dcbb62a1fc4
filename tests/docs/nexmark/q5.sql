WITH counts AS (
    SELECT auction, count(*) AS num, starttime, starttime + INTERVAL 10 SECOND AS endtime
    FROM (
        SELECT auction, time_bucket(INTERVAL 2 SECOND, datetime) - 2 * number * INTERVAL 1 SECOND
            AS starttime
        FROM bid, range(5) AS numbers(number)
    )
    GROUP BY auction, starttime
)
SELECT auction, num, starttime, endtime
FROM counts JOIN (
    SELECT max(num) AS maxn, starttime, endtime FROM counts GROUP BY starttime, endtime
) USING (starttime, endtime)
WHERE num >= maxn
