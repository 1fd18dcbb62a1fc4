CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON WITH (allowed_in_flight = 5, ordered = true) AS $$ return x $$;
CREATE FUNCTION g(x INT) RETURNS INT LANGUAGE PYTHON WITH (allowed_in_flight = 0) AS $$ return await x $$;
CREATE TABLE a (x INT) WITH (connector = 'files', path = 'a', format = 'json');
SELECT f(x), g(x) FROM a;
