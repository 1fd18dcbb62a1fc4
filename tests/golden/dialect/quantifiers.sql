SELECT a FROM t WHERE a = ANY(xs) AND b <> ALL ([1, 2]) OR c.d > SOME (make_array(0, 2))
SELECT a + 1 = ANY(xs), -a * 2 <= ALL(xs), upper(s) || 'x' = ANY(split(u, ',')) FROM t
SELECT a FROM t WHERE a = ANY (SELECT b FROM v) OR a <> ALL (SELECT b FROM v)
SELECT any(flag), s LIKE ANY ('a%', 'b%'), count(ALL a) FROM t
SELECT a ->> 'b' = ANY(xs), filter(ys, y -> y = ANY(xs)), a = ANY(xs[1:2]) FROM t
