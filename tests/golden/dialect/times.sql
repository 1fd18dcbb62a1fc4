SELECT date_bin(INTERVAL '15 minutes', at), date_bin(INTERVAL '1' HOUR, at, TIMESTAMP '2026-01-01')
SELECT to_timestamp_millis(ms), to_timestamp_micros(us), to_timestamp_seconds(s), to_timestamp_nanos(ns)
SELECT extract(epoch FROM at), date_part('epoch', at), extract(hour FROM at), date_trunc('day', at)
SELECT now() - INTERVAL '5 minutes', to_unixtime(at), at + INTERVAL 1 DAY
