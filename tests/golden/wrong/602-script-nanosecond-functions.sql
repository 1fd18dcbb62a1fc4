CREATE TABLE a (n BIGINT, at TIMESTAMP(6), t TEXT) WITH (connector = 'single_file', path = 'a', format = 'json');
CREATE VIEW b AS SELECT to_timestamp_nanos(n) AS at FROM a;
CREATE VIEW c AS SELECT n, t::TIMESTAMP(9) AS at FROM a;
CREATE VIEW d AS SELECT CAST(t AS TIMESTAMP_NTZ(9)) AS at FROM a;
CREATE VIEW e AS SELECT arrow_cast(t, 'Timestamp(Nanosecond, None)') AS at FROM a;
CREATE VIEW f AS SELECT arrow_cast(t, 'Time64(Nanosecond)') AS at FROM a;
SELECT timestamp_nanos(n), unix_nanos(at), to_timestamp_nanos('2024-05-01T12:37:45.678901234') FROM a;
SELECT n FROM a WHERE at > TIMESTAMP '2024-05-01 12:37:45.678901234' OR at < TIMESTAMP '2024-05-01 12:37:45.678901000';
