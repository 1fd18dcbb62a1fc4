SELECT value -> 'a', value ->> 'b c', value -> 'a' -> 0 ->> 'd' FROM t
SELECT (value -> 'price')::DOUBLE, CAST(value -> 'n' AS BIGINT), value ? 'key' FROM t
SELECT transform(xs, x -> x + 1), filter(xs, (x, i) -> i > 0), upper(t.value ->> 'x') FROM t
