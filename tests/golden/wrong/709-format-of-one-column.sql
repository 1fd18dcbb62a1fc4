CREATE TABLE t (a TEXT, b TEXT) WITH (
    connector = 'single_file', path = 'a.jsonl', format = 'raw_string'
);
CREATE TABLE u (a BIGINT) WITH (connector = 'files', path = 'a.bin', format = 'raw');
SELECT a FROM t; SELECT a FROM u;
