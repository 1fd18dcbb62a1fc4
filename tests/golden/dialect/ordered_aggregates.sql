SELECT array_agg(a ORDER BY b), array_agg(a ORDER BY b DESC NULLS LAST, c) FILTER (WHERE a > 1) FROM t
SELECT array_agg(DISTINCT a ORDER BY a), array_agg(a), array_agg(DISTINCT a) FROM t
SELECT first_value(a ORDER BY b), first_value(a ORDER BY b DESC), last_value(a ORDER BY b NULLS FIRST) FROM t
SELECT first_value(a ORDER BY b, c DESC), last_value(a ORDER BY b) IGNORE NULLS, first_value(a) FROM t
SELECT nth_value(a, 2 ORDER BY b), nth_value(a, -1 ORDER BY b DESC) FROM t
SELECT string_agg(a, ','), string_agg(a, ',' ORDER BY b), string_agg(DISTINCT a, ',' ORDER BY a DESC) FROM t
SELECT string_agg(upper(a), ',' ORDER BY f(b, c)) FILTER (WHERE b > 1) AS x FROM t
