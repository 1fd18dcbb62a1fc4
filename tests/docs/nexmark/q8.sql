SELECT DISTINCT p.id, p.name, time_bucket(INTERVAL 10 SECOND, p.datetime) AS starttime
FROM person AS p, auction AS a
WHERE p.id = a.seller
  AND time_bucket(INTERVAL 10 SECOND, p.datetime) = time_bucket(INTERVAL 10 SECOND, a.datetime)
