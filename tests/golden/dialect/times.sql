SELECT date_bin(INTERVAL '15 minutes', at), date_bin(INTERVAL '1' HOUR, at, TIMESTAMP '2026-01-01')
SELECT to_timestamp_millis(ms), to_timestamp_micros(us), to_timestamp_seconds(s), to_timestamp_nanos('2024-05-01 12:00:00.123456')
SELECT extract(epoch FROM at), date_part('epoch', at), extract(hour FROM at), date_trunc('day', at)
SELECT now() - INTERVAL '5 minutes', to_unixtime(at), at + INTERVAL 1 DAY
SELECT date_bin(INTERVAL '3 months', at), date_bin('1 year', at), to_timestamp_millis('2026-01-01'), datetrunc('day', at)
SELECT date_part('millisecond', at), extract(microseconds FROM at), extract(isodow FROM at), date_part('dow', at)
SELECT extract(epoch FROM (b - a)), extract(epoch FROM b - a), extract(epoch FROM at - INTERVAL 1 DAY), extract(epoch FROM INTERVAL '90 seconds')
SELECT from_unixtime(n, 'Europe/Berlin'), from_unixtime(n, 'yyyy'), from_unixtime(n), to_date(19844), to_date(a)
