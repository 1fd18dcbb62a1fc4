CREATE TABLE a (id BIGINT, n BIGINT) WITH (connector = 'files', path = 'a', format = 'json');
CREATE TABLE b (id BIGINT NOT NULL, n BIGINT NOT NULL) WITH (connector = 'memory');
INSERT INTO b (n) SELECT n FROM a;
