SET updating_ttl = '0 seconds';
CREATE TABLE a (id INT) WITH (connector = 'files', path = 'a/*.json', format = 'json', watch = true);
CREATE TABLE b (n BIGINT) WITH (connector = 'files', path = 'b', format = 'debezium_json');
INSERT INTO b SELECT count(*) FROM a;
