CREATE TABLE a (id BIGINT, name TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds')
  WITH (connector = 'single_file', path = 'in/*.json', format = 'json');
CREATE AGGREGATE FUNCTION joined(name STRING) RETURNS STRING LANGUAGE PYTHON AS $$
return ", ".join(name)
$$;
CREATE MACRO total(x) AS sum(x);
CREATE VIEW v AS SELECT tumble(INTERVAL '1 minute'), total(id) FILTER (WHERE id > 3) AS n
  FROM a GROUP BY 1;
SELECT joined(DISTINCT name ORDER BY id) AS names FROM a GROUP BY tumble(INTERVAL '1 minute');
