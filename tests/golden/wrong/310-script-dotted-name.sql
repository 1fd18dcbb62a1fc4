CREATE TABLE db.a (id BIGINT) WITH (connector = 'files', path = 'x');
