CREATE MACRO top(x) AS (SELECT max(id) FROM orders);
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
