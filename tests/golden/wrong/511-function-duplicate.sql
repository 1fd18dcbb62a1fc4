CREATE MACRO one(x) AS x;
CREATE MACRO ONE(x) AS x;
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
