CREATE FUNCTION gcd(a BIGINT, b BIGINT) RETURNS BIGINT RETURN a + b;
CREATE TABLE t (id BIGINT) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT gcd(id, 4) AS g FROM t;
