CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON WITH (ordered = true, unordered = true) AS $$ return await x $$;
CREATE FUNCTION g(x INT) RETURNS INT LANGUAGE PYTHON WITH (allowed_in_flight = 5, concurrency = 5) AS $$ return await x $$;
CREATE FUNCTION h(x INT) RETURNS INT LANGUAGE PYTHON WITH (unordered = 'perhaps') AS $$ return await x $$;
CREATE FUNCTION i(x INT) RETURNS INT LANGUAGE PYTHON WITH (in_flight = 5) AS $$ return await x $$;
