CREATE TABLE a (id, name STRING) WITH (connector = 'files', path = 'x');
