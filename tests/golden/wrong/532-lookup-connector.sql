CREATE TABLE orders (id INT, user INT) WITH (connector = 'files', path = 'in/*.json');
CREATE TEMPORARY TABLE users (id INT PRIMARY KEY, name STRING)
WITH (connector = 'redis', url = 'redis://localhost:6379', keys = 'users');
CREATE TABLE names (id INT PRIMARY KEY, name STRING)
WITH (connector = 'files', path = 'names.csv', 'lookup.cache.ttl' = 'often');
SELECT o.id, n.name FROM orders AS o LEFT JOIN names AS n ON o.user = n.id;
