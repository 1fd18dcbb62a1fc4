SELECT category, avg(final) AS average
FROM (
    SELECT max(b.price) AS final, a.category
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires
    GROUP BY a.id, a.category
)
GROUP BY category
