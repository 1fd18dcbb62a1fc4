SELECT id, seller, avg(final) OVER (
    PARTITION BY seller ORDER BY datetime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
) AS average
FROM (
    SELECT a.id, a.seller, max(b.price) AS final, arg_max(b.datetime, b.price) AS datetime
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires
    GROUP BY a.id, a.seller
)
