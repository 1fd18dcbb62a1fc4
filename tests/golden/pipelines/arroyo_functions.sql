-- Functions and operators of DataFusion and PostgreSQL, with their results.
CREATE TABLE logs (
    value JSON,
    line TEXT,
    at TIMESTAMP,
    ms BIGINT,
    tags TEXT[]
) WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');

CREATE TABLE json_values (a TEXT, b TEXT, c TEXT, n BIGINT, known BOOLEAN, price DOUBLE, xs TEXT[],
    length BIGINT, missing TEXT)
WITH (connector = 'memory');
INSERT INTO json_values
SELECT value -> 'a', value ->> 'a', value -> 'o' ->> 'p', json_get_int(value, 'xs', 1), value ? 'a',
    (value -> 'price')::DOUBLE, extract_json(value, '$.xs[*]'), json_length(value, 'xs'),
    extract_json_string(value, '$.nothing')
FROM logs;

CREATE TABLE times (bin TIMESTAMP, day TIMESTAMP, epoch DOUBLE, at TIMESTAMP) WITH (connector = 'memory');
INSERT INTO times
SELECT date_bin(INTERVAL '15 minutes', at), date_trunc('day', at), extract(epoch FROM at),
    to_timestamp_millis(ms)
FROM logs WHERE at > TIMESTAMP '2020-01-01' - INTERVAL '5 minutes';

CREATE TABLE texts (position INT, groups TEXT[], is_get BOOLEAN, status INT, hash TEXT, sum TEXT)
WITH (connector = 'memory');
INSERT INTO texts
SELECT strpos(line, 'x'), regexp_match(line, '^(\\w+) (\\S+)'), line ~* '^get', split_part(line, ' ', 3)::INT,
    md5(line), encode(sha256(line), 'hex')
FROM logs;

CREATE TABLE tags (tag TEXT, count BIGINT) WITH (connector = 'memory');
INSERT INTO tags SELECT unnest(tags) AS tag, array_length(tags) FROM logs WHERE array_has(tags, 'b');
