SELECT value -> 'a', value ->> 'b c', value -> 'a' -> 0 ->> 'd' FROM t
SELECT (value -> 'price')::DOUBLE, CAST(value -> 'n' AS BIGINT), value ? 'key' FROM t
SELECT transform(xs, x -> x + 1), filter(xs, (x, i) -> i > 0), upper(t.value ->> 'x') FROM t
SELECT (value -> 'a')::TEXT, CAST((value -> 'a') AS BOOLEAN), (value -> 'a' -> 0)::INT4, value -> 'a'::DOUBLE PRECISION FROM t
SELECT (value -> 'a')::DECIMAL(10, 2), CAST(value -> 'a' AS TIMESTAMP), (value ->> 'a')::BIGINT, TRY_CAST(value -> 'a' AS VARCHAR(5)), (value -> 'a')::BIGINT UNSIGNED FROM t
SELECT value ->> key, value -> t.key, value ? key, value ->> concat('k', ''), value ->> n + 1, value -> 'a' -> (n + 1) ->> 'b' FROM t
SELECT value ->> 'it''s', '{"a''b":1}' ->> 'a''b', value -> 'a' ->> 'x"y' ->> 'z', (value -> key)::BIGINT, value ->> (key ->> 'k') FROM t
SELECT transform(xs, x -> x ->> 'a'), transform(xs, x -> x -> key), value ->> key = 'a' AND value ->> '{0}' IS NULL FROM t
