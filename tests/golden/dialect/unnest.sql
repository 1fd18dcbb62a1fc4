SELECT unnest(xs) AS x, n FROM t
SELECT unnest(xs) -> 'name' AS name, n FROM t WHERE n > 1
SELECT unnest(xs)::BIGINT + 1 AS x FROM (SELECT * FROM t) AS s GROUP BY 1
SELECT *, upper(unnest(xs)) AS x FROM t
WITH s AS (SELECT json_get_str(unnest(extract_json(v, '$.a[*].b')), 'c') AS c FROM t) SELECT c FROM s
SELECT tumble(INTERVAL '1 minute') AS window, lower(unnest(xs)) AS x, count(*) FROM t GROUP BY 1, 2
