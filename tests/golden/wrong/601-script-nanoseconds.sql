CREATE TABLE a (at TIMESTAMP(9), s STRUCT<t TIMESTAMP(9)>) WITH (connector = 'files', path = 'a', format = 'json');
CREATE FUNCTION f(at TIMESTAMP(9)) RETURNS BIGINT LANGUAGE PYTHON AS $$ return 1 $$;
