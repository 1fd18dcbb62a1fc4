CREATE TABLE t (value BYTEA) WITH (connector = 'single_file', path = 'x.json', format = 'raw_bytes', framing='newline', type = 'source');
SELECT value FROM t;
