CREATE MACRO one(x) AS two(x);
CREATE MACRO two(x) AS one(x);
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
