CREATE TABLE users (id INT, city STRING)
WITH (connector = 'kafka', brokers = 'localhost:9092', topic = 'users', format = 'debezium_json');

CREATE TABLE cities (city STRING PRIMARY KEY, users BIGINT)
WITH (connector = 'memory');

INSERT INTO cities SELECT city, count(*) FROM users GROUP BY city;
