CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in', format = 'json', format = 'csv');
SELECT id FROM a;
