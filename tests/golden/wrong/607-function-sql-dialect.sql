CREATE FUNCTION f(x STRING) RETURNS INT RETURN regexp_instr(x, 'a', 1, 2);
CREATE MACRO g(x) AS x AT TIME ZONE 'Europe/Berlin';
CREATE MACRO h(x) AS
    to_timestamp_nanos(x);
CREATE TABLE a (x STRING) WITH (connector = 'files', path = 'a', format = 'json');
SELECT f(x), g(x), h(x) FROM a;
