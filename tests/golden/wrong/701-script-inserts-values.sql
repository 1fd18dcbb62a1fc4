CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in/*.csv', format = 'csv');
CREATE TABLE s (id BIGINT) WITH (connector = 'files', path = 'out', format = 'json');
INSERT INTO s VALUES (1), (2);
