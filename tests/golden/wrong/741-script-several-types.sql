CREATE TABLE t (id BIGNT, n INT8, at TIMESTMP NOT NULL, place STRUCT<x INT8, y STRIN, z DUBLE>)
WITH (connector = 'generate', rows = 3);
CREATE FUNCTION words(text STRIN, length INTT) RETURNS TABLE (word STRNG, n INTT) LANGUAGE PYTHON AS $$
yield text, 1
$$;
SELECT id FROM t;
