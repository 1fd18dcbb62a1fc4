CREATE TABLE (id BIGINT) WITH (connector = 'files');
