CREATE TABLE e (id BIGINT, at TIMESTAMP) WITH (connector = 'files', path = 'e.json', format = 'json');
SELECT date_trunc('minut', at) AS m FROM e;
SELECT to_char(at, 'YYYY-MM-DD') AS d FROM e;
